package effect

// An Identity is what a file is, whatever its name: the same one has the same
// Device and Inode, and a copy the same Sum.
type Identity struct {
	Device, Inode uint64   // 0 where the system has none
	Sum           [16]byte // of its SHA-256
}
