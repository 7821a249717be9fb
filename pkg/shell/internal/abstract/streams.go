package abstract

// Streams are the input and the output targets of a command.
type Streams struct {
	Stdin                          Value
	InputFileWrittenByAnalyzedText string // file behind Stdin, if the text wrote it
	ExistingInputFile              string // file from which Stdin is redirected, if the analyzed text does not tell its content; else ""
	InputRedirected                bool   // Stdin is redirected: neither the pipe nor the terminal
	Out                            *OutputTarget
	HasSocket                      bool // a descriptor is a network connection
	HasDuplicatedOutputDescriptor  bool // an output descriptor was duplicated, so output may have another target
	IsStdinHeredoc                 bool // Stdin is a here-document or here-string: part of the command
}

// An OutputTarget is the destination of output.
type OutputTarget struct {
	Path                          string
	PathIsGlobPattern             bool
	WritesIntoFolder              bool // Path is a folder, and files are written in it
	Append                        bool
	WritesEachListedOrMatchedFile bool // every file of a list, or every file that a glob matches, is written
	Discard                       bool // /dev/null, or a stream other than standard output
	IsSocket                      bool
}
