package effect

import "slices"

// A TaintLabel is a taint of data: its origin or its content. Labels follow values, streams and files through a
// command.
type TaintLabel string

// The labels.
const (
	LabelFromCredentialLocation TaintLabel = "secret"     // read from a place that holds credentials
	LabelCredential             TaintLabel = "credential" // value of a variable whose name is that of a credential, such as API_TOKEN
	LabelPersonalData           TaintLabel = "private"    // clipboard, screen, mail, messages
	LabelFromNetwork            TaintLabel = "network"    // received from another machine
	LabelDecoderOutput          TaintLabel = "decoded"    // written by a decoder
	LabelCommandOutput          TaintLabel = "input"      // written by another part of the command
	LabelUntrusted              TaintLabel = "untrusted"  // written by an untrusted person or page
	LabelDatabaseRows           TaintLabel = "rows"       // from a database of this machine
	LabelPublishableData        TaintLabel = "public"     // made to be published: build output and templates
)

// Labels returns all labels.
func Labels() []TaintLabel {
	return []TaintLabel{LabelFromCredentialLocation, LabelCredential, LabelPersonalData, LabelFromNetwork, LabelDecoderOutput, LabelCommandOutput, LabelUntrusted, LabelDatabaseRows, LabelPublishableData}
}

// HasLabel reports whether an effect carries a label.
func (e *Effect) HasLabel(l TaintLabel) bool {
	return slices.Contains(e.DataLabels, l)
}
