package abstract

// Streams are what a command reads and where its output goes.
type Streams struct {
	In         Value
	From       string // the file that in is from, where the text wrote that
	File       string // the file that in is from, where the text did not write it
	Redirected bool   // in is not what the pipe or the terminal gives
	Out        *Target
	Socket     bool // some descriptor is a network connection
	Moved      bool // a descriptor of output was made another, so what is written may go elsewhere
	Here       bool // in is a here-document or here-string: text that belongs to the command
}

// A Target is where output goes.
type Target struct {
	Path    string
	Pattern bool
	Tree    bool // a folder, and all that is put in it
	Append  bool
	Listed  bool // each of the files that a command lists or a glob matches
	Discard bool // /dev/null, and output that is not standard output
	Socket  bool
}
