package effect

import "slices"

// A Label says what is known of data: where it comes from, or what it holds.
// Labels follow values, streams and files through one text.
type Label string

// The labels.
const (
	LabelSecret     Label = "secret"     // read from a place that holds credentials
	LabelCredential Label = "credential" // a variable whose name says that it is one
	LabelPrivate    Label = "private"    // clipboard, screen, mail, messages
	LabelNetwork    Label = "network"    // another machine sent it
	LabelDecoded    Label = "decoded"    // a decoder wrote it
	LabelInput      Label = "input"      // another part of the command writes it
	LabelUntrusted  Label = "untrusted"  // an untrusted person or page wrote it
	LabelRows       Label = "rows"       // a database of this machine holds it
	LabelPublic     Label = "public"     // made to be delivered: what a build writes, and templates
)

// Labels returns all labels.
func Labels() []Label {
	return []Label{LabelSecret, LabelCredential, LabelPrivate, LabelNetwork, LabelDecoded, LabelInput, LabelUntrusted, LabelRows, LabelPublic}
}

// Is reports whether an effect carries a label.
func (e *Effect) Is(l Label) bool {
	return slices.Contains(e.Labels, l)
}
