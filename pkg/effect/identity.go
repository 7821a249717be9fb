package effect

// A FileIdentity identifies a file independently of its name: hard links have the same Device and
// Inode, and copies have the same ContentSHA256Prefix.
type FileIdentity struct {
	Device, Inode       uint64   // 0 where the system has none
	ContentSHA256Prefix [16]byte // the first half of its SHA-256
}
