package modelstore

import (
	"bytes"
	"context"
	"io/fs"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// ModelInfo describes a model for a person.
type ModelInfo struct {
	Name                string   `json:"name"`
	EmbeddedOrInstalled string   `json:"source"` // "embedded" for the model in shield's executable, "installed" for a model in the store
	Size                int64    `json:"size"`   // bytes of all files
	Licence             string   `json:"licence,omitzero"`
	MinBlockConfidence  *float64 `json:"threshold,omitzero"`
	ModelFilesDigest    string   `json:"digest,omitzero"`
	PulledFrom          string   `json:"from,omitzero"`  // path or URL that it was pulled from
	Error               string   `json:"error,omitzero"` // why the model cannot be used
}

// List describes all models. It takes the data from their manifests without verifying the files;
// [Store.DigestAndManifestDifferences] verifies them.
func (s *Store) List(ctx context.Context) ([]ModelInfo, error) {
	var list []ModelInfo
	if s.embedded != nil {
		info := ModelInfo{Name: EmbeddedModelName, EmbeddedOrInstalled: "embedded", Size: s.embedded.Size, ModelFilesDigest: s.embedded.Digest}
		info.addDescription(fs.ReadFile(s.embedded.FS, modelDescriptionFileName))
		list = append(list, info)
	}
	names, err := s.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list = append(list, s.describeInstalled(name))
	}
	return list, nil
}

// describeInstalled describes one installed model.
func (s *Store) describeInstalled(name string) ModelInfo {
	info := ModelInfo{Name: name, EmbeddedOrInstalled: "installed"}
	dir, err := s.Find(name)
	if err != nil {
		info.Error = err.Error()
		return info
	}
	m, err := readManifest(dir)
	if err != nil {
		info.Error = err.Error()
		return info
	}
	info.ModelFilesDigest, info.PulledFrom = m.Digest, m.Source
	for _, f := range m.Files {
		info.Size += f.Size
	}
	info.addDescription(readRegularTextFile(filepath.Join(dir, modelDescriptionFileName)))
	return info
}

// addDescription adds the licence and the threshold from a model's shield.json. It ignores a file
// that cannot be read: shield does not load such a model.
func (i *ModelInfo) addDescription(data []byte, err error) {
	var says struct {
		Licence   string   `json:"licence"`
		Threshold *float64 `json:"threshold"`
	}
	if err == nil && json.Unmarshal(bytes.TrimSpace(data), &says) == nil {
		i.Licence, i.MinBlockConfidence = says.Licence, says.Threshold
	}
}
