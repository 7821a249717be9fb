package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbom creates the SBOM of a target's program, from its build information, and of its image.
func (r *Release) sbom(_ context.Context, b *Build) error {
	components, err := r.components(b)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	main := component(cdx.ComponentTypeApplication, r.Name, r.Number(), "pkg:golang/"+b.Info.Main.Path+"@"+r.Source.Version)
	main.Description, main.Licenses = r.Summary, &cdx.Licenses{{License: &cdx.License{ID: r.License}}}
	sum := sha256.Sum256(b.Program)
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	bom.Metadata = &cdx.Metadata{Timestamp: r.Source.Time.Format(time.RFC3339), Component: &main}
	bom.Components = &components
	var out bytes.Buffer
	err = cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return r.write(r.top(b.Target.Name)+".cdx.json", out.Bytes(), err)
}

// components returns the modules in a program, the model and its runtime, and the packages in its
// image.
func (r *Release) components(b *Build) ([]cdx.Component, error) {
	goVersion := strings.TrimPrefix(b.Info.GoVersion, "go")
	list := []cdx.Component{component(cdx.ComponentTypeLibrary, "stdlib", goVersion, "pkg:golang/stdlib@"+goVersion)}
	for _, m := range b.Info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, component(cdx.ComponentTypeLibrary, m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version))
	}
	if b.HasModel {
		runtime, err := r.runtimeVersion()
		if err != nil {
			return nil, err
		}
		graph, err := os.ReadFile(filepath.Join(r.Source.Dir, "models/default/model.onnx"))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(graph)
		model := component(cdx.ComponentTypeMachineLearningModel, "default", r.Number(), "")
		model.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
		list = append(list, component(cdx.ComponentTypeLibrary, "onnxruntime", runtime, "pkg:github/microsoft/onnxruntime@v"+runtime), model)
	}
	for _, p := range b.debian {
		c := component(cdx.ComponentTypeLibrary, p.Name, p.Version, p.url())
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.Sum}}
		c.Description = "in the image, from Debian"
		list = append(list, c)
	}
	return list, nil
}

func component(kind cdx.ComponentType, name, version, url string) cdx.Component {
	return cdx.Component{BOMRef: string(kind) + ":" + name, Type: kind, Name: name, Version: version, PackageURL: url}
}

var runtimeVersion = regexp.MustCompile(`(?m)^const Version = "([0-9.]+)"$`)

// runtimeVersion returns the embedded version of ONNX Runtime.
func (r *Release) runtimeVersion() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.Source.Dir, "internal/ortlib/ortlib.go"))
	if err != nil {
		return "", err
	}
	m := runtimeVersion.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("internal/ortlib/ortlib.go names no version")
	}
	return string(m[1]), nil
}
