package main

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// provenance creates the provenance statement about the sources of all files. It contains no build
// time, so that a rebuild gives the same bytes.
func (r *Release) provenance() error {
	data, err := r.statement()
	return r.write("provenance.json", data, err)
}

func (r *Release) statement() ([]byte, error) {
	dependencies, err := r.dependencies()
	if err != nil {
		return nil, err
	}
	parameters, err := structpb.NewStruct(map[string]any{"version": r.Source.Version})
	if err != nil {
		return nil, err
	}
	command := r.Homepage + "/tree/" + r.Source.Version + "/release"
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{BuildType: command, ExternalParameters: parameters, ResolvedDependencies: dependencies},
		RunDetails:      &provenance.RunDetails{Builder: &provenance.Builder{Id: command, Version: map[string]string{"go": runtime.Version()}}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, err
	}
	var fields structpb.Struct
	if err := protojson.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: "https://slsa.dev/provenance/v1", Predicate: &fields}
	for _, f := range r.files {
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{Name: f.Name, Digest: map[string]string{"sha256": f.Sum}})
	}
	if err := statement.Validate(); err != nil {
		return nil, err
	}
	return indented(statement)
}

// indented returns a message as indented JSON; the protobuf library varies white space deliberately.
func indented(m proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, text, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}

// dependencies returns the build inputs other than Go and its modules, whose checksums are in go.sum.
func (r *Release) dependencies() ([]*intoto.ResourceDescriptor, error) {
	list := []*intoto.ResourceDescriptor{{
		Uri: "git+" + r.Homepage + "@refs/tags/" + r.Source.Version, Digest: map[string]string{"gitCommit": r.Source.Commit},
	}}
	zig, err := r.Source.zig()
	if err != nil {
		return nil, err
	}
	list = append(list, &intoto.ResourceDescriptor{Uri: "pkg:pypi/" + zig.Name + "@" + zig.Version, Digest: map[string]string{"sha256": zig.Sum}})
	seen := map[string]bool{}
	for _, b := range r.built {
		for _, p := range b.debian {
			if url := p.url(); !seen[url] {
				seen[url] = true
				list = append(list, &intoto.ResourceDescriptor{Uri: url, Digest: map[string]string{"sha256": p.Sum}})
			}
		}
	}
	return list, nil
}

// url returns the package URL of a Debian package (https://github.com/package-url/purl-spec).
func (p Debian) url() string {
	escape := strings.NewReplacer("+", "%2B", ":", "%3A")
	return "pkg:deb/debian/" + escape.Replace(p.Name) + "@" + escape.Replace(p.Version) + "?arch=" + p.Arch
}
