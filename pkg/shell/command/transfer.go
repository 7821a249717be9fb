package command

import "strings"

// maxFTPUploads is the maximum number of files recorded as sent by transfer commands.
const maxFTPUploads = 64

// addFTPUploads records the files that commands of ftp, sftp, lftp and smbclient send.
func (r *argParser) addFTPUploads(w Word) {
	for line := range strings.Lines(w.Text) {
		if run, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok { // a command on this machine
			r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{{Text: run, Span: w.Span}}})
		}
	}
	for _, f := range ParseFTPUploads(w.Text) {
		w.Text = f.Path
		r.addSentFile(w, f.IsRecursive)
	}
}

// An FTPUpload is a file or folder that is sent.
type FTPUpload struct {
	Path        string
	IsRecursive bool
}

// ParseFTPUploads returns the files that a file transfer program's commands send, such as "put a.txt; mirror -R src".
// Commands are separated by newlines or semicolons.
func ParseFTPUploads(commands string) []FTPUpload {
	var out []FTPUpload
	for line := range strings.FieldsFuncSeq(commands, func(c rune) bool { return c == ';' || c == '\n' }) {
		words := strings.Fields(line)
		if len(words) < 2 || !TransferWords[words[0]] {
			continue
		}
		tree := words[0] == "mirror"
		back := false
		var names []string
		for _, w := range words[1:] {
			switch {
			case w == "-R" || w == "--reverse":
				back = true
			case w == "-r":
				tree = true
			case !strings.HasPrefix(w, "-"):
				names = append(names, strings.Trim(w, `"'`))
			}
		}
		if words[0] == "mirror" && !back {
			continue
		}
		if words[0] != "mput" && len(names) > 1 {
			names = names[:1] // the second name is the remote one
		}
		for _, name := range names {
			if len(out) == maxFTPUploads {
				return out
			}
			out = append(out, FTPUpload{name, tree})
		}
	}
	return out
}
