package effect

import "slices"

// A Label is a taint of data: its origin or its content. Labels follow values, streams and files through a
// command.
type Label string

// The labels.
const (
	LabelSecret                Label = "secret"     // read from a place that holds credentials
	LabelCredential            Label = "credential" // value of a variable whose name is that of a credential, such as API_TOKEN
	LabelPrivate               Label = "private"    // clipboard, screen, mail, messages
	LabelNetwork               Label = "network"    // received from another machine
	LabelDecoded               Label = "decoded"    // written by a decoder
	LabelSameCommandLineOutput Label = "input"      // written by another part of the command
	LabelUntrusted             Label = "untrusted"  // written by an untrusted person or page
	LabelDatabaseRows          Label = "rows"       // from a database of this machine
	LabelPublic                Label = "public"     // made to be published: build output and templates
)

// Labels returns all labels.
func Labels() []Label {
	return []Label{LabelSecret, LabelCredential, LabelPrivate, LabelNetwork, LabelDecoded, LabelSameCommandLineOutput, LabelUntrusted, LabelDatabaseRows, LabelPublic}
}

// HasLabel reports whether an effect carries a label.
func (e *Effect) HasLabel(l Label) bool {
	return slices.Contains(e.Labels, l)
}
