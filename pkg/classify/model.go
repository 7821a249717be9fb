package classify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/tokenizer"
	"github.com/shieldcli/shield/pkg/analysis"
)

// ErrNoRuntime means that this build cannot run models in-process.
var ErrNoRuntime = errors.New("this build of shield has no ONNX Runtime")

// A ModelCard is a model's shield.json: what shield needs to know in addition to
// HuggingFace's files. Every field is optional.
type ModelCard struct {
	Name                       string             `json:"name,omitzero"`
	Version                    string             `json:"version,omitzero"`
	BlockThreshold             float64            `json:"threshold,omitzero"`       // least confidence at which INJECTION blocks, 0–1; 0 means the value of the settings
	BlockThresholdByActionType map[string]float64 `json:"thresholds,omitzero"`      // overrides BlockThreshold, by type of action
	SafeThresholdByActionType  map[string]float64 `json:"safe_thresholds,omitzero"` // by type of action: least confidence at which SAFE counts, 0–1; absent means 0
	SafeThresholdByDoubtCause  map[string]float64 `json:"doubts,omitzero"`          // by [analysis.EffectSafetyDoubt.CauseName]: lowest confidence at which the answer SAFE removes that doubt
	SkippedActionTypes         []string           `json:"skip_types,omitzero"`      // types of action that the model does not judge
	MaxWindowTokens            int                `json:"max_length,omitzero"`      // tokens per window; 0 means the model's number of positions, at most 512
	MaliciousLabel             string             `json:"malicious_label,omitzero"` // the label that means an injection; "" means INJECTION
	IsGraphOptimized           bool               `json:"optimized,omitzero"`       // ONNX Runtime optimised the graph before it was saved
	LinearModel                *LinearModelCard   `json:"wide,omitzero"`            // a fast linear model that answers alone if it is certain; nil: there is none
	Licence                    string             `json:"licence,omitzero"`
	TrainingDataSources        jsontext.Value     `json:"sources,omitzero"`  // the data sets that the model was trained on
	EvaluationResults          jsontext.Value     `json:"measured,omitzero"` // results of the measurements of the model
}

// A huggingFaceConfig holds the fields of a HuggingFace config.json that shield reads.
type huggingFaceConfig struct {
	ID2Label              map[string]string `json:"id2label"`
	MaxPositionEmbeddings int               `json:"max_position_embeddings"`
	VocabSize             int               `json:"vocab_size"`
	PadTokenID            int               `json:"pad_token_id"`
	Type                  string            `json:"model_type"`
}

// Limits of a model's files, in bytes, and of the windows of tokens into which a text is split for the model.
const (
	maxModelFileBytes      = 1 << 30
	maxModelJSONFileBytes  = 32 << 20
	maxWindowTokens        = 512 // tokens per window
	minWindowTokens        = 16
	maxTokenWindowsPerText = 32      // per text
	maxTokensPerText       = 4 << 10 // maximum for all windows of a text together; the time for a window grows faster than its length
)

// graphFileCandidates are the paths at which exports store the graph.
var graphFileCandidates = [...]string{"model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx"}

// A Model is a folder with a HuggingFace export for sequence classification:
// model.onnx, tokenizer.json, config.json and, optionally, shield.json. It is
// loaded when the first text is scored. Goroutines share it.
type Model struct {
	Card                        ModelCard
	FilesDigest                 string // SHA-256 over the names and contents of its files, in hex
	ScoresOnlyOneTextPerProcess bool   // the process scores only one text: load faster, score slower; set before the first call

	files               fs.FS
	isPublishedByShield bool                    // shield's own model, whose tokenizer shield implements itself
	preprocessedFolder  preprocessedModelFolder // preprocessed parts of shield's own model; nil: all files are parsed
	graphFile           string                  // name of the file with the graph; "" if the model is preprocessed
	maliciousLabelIndex int                     // index of the label for malicious text in the model's output
	labelCount          int
	windowTokenCount    int // tokens of a window, including special tokens
	vocabSize           int
	onnxRuntimePath     func() (string, error)
	loadTokenizer       func() (*tokenizer.Tokenizer, error)
	linearWeights       func() ([]byte, error) // reads the weights of the linear model
	load                func() (*loadedModel, error)
}

// A loadedModel holds the tokenizer and the graph that scoring needs.
type loadedModel struct {
	tokenizer *tokenizer.Tokenizer
	session   modelGraphRunner
}

// A modelGraphRunner runs a model's graph on the tokens of one window and returns its logits.
type modelGraphRunner interface {
	run(ctx context.Context, ids []int64) ([]float32, error)
}

// OpenModel reads the description of the model in a folder. It returns an error for a model that
// shield does not support. When the model is loaded, onnxRuntimePath is called for the path of ONNX
// Runtime. digest is the known digest of shield's own model; it is "" for a user's model, whose
// files are hashed.
func OpenModel(files fs.FS, digest string, onnxRuntimePath func() (string, error)) (*Model, error) {
	m := &Model{files: files, isPublishedByShield: digest != "", FilesDigest: digest, onnxRuntimePath: onnxRuntimePath}
	if info, err := fs.Stat(files, "."); err != nil || !info.IsDir() {
		return nil, errors.New("model: the folder does not exist; name a folder with model.onnx")
	}
	if err := m.readCard(); err != nil {
		return nil, err
	}
	if err := m.readConfig(); err != nil {
		return nil, err
	}
	if m.isPublishedByShield {
		m.preprocessedFolder, _ = files.(preprocessedModelFolder)
	}
	if m.preprocessedFolder == nil {
		if err := m.findGraph(); err != nil {
			return nil, err
		}
	}
	if m.FilesDigest == "" {
		var err error
		if m.FilesDigest, err = ModelFilesDigest(files); err != nil {
			return nil, err
		}
	}
	m.loadTokenizer, m.linearWeights, m.load = sync.OnceValues(m.openVocabCheckedTokenizer), sync.OnceValues(m.readLinearWeights), sync.OnceValues(m.loadTokenizerAndGraph)
	return m, nil
}

// findGraph sets the name of the graph's file.
func (m *Model) findGraph() error {
	for _, name := range graphFileCandidates {
		if info, err := fs.Stat(m.files, name); err == nil && info.Mode().IsRegular() {
			m.graphFile = name
			return nil
		}
	}
	return errors.New("model: model.onnx is missing in the folder; name the model's folder")
}

func (m *Model) readCard() error {
	data, err := readFile(m.files, "shield.json", 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &m.Card, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("model: shield.json is invalid: %w; install the model again with 'shield model pull --force'", err)
	}
	limits := slices.AppendSeq([]float64{m.Card.BlockThreshold}, maps.Values(m.Card.SafeThresholdByDoubtCause))
	for cause := range m.Card.SafeThresholdByDoubtCause {
		if !analysis.CanModelAllowDanger(cause) {
			return fmt.Errorf("model: shield.json: \"doubts\" has the key %.40q, but no model can allow this effect; remove the key", cause)
		}
	}
	for _, byType := range []map[string]float64{m.Card.BlockThresholdByActionType, m.Card.SafeThresholdByActionType} {
		limits = slices.AppendSeq(limits, maps.Values(byType))
	}
	for _, t := range limits {
		if t < 0 || t > 1 {
			return fmt.Errorf("model: shield.json: threshold %v is not between 0 and 1; correct it", t)
		}
	}
	if m.Card.LinearModel != nil {
		return m.Card.LinearModel.validateCoefficients()
	}
	return nil
}

func (m *Model) readConfig() error {
	data, err := readFile(m.files, "config.json", 1<<20)
	if err != nil {
		return err
	}
	var c huggingFaceConfig
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("model: config.json is invalid: %w; install the model again with 'shield model pull --force'", err)
	}
	if m.maliciousLabelIndex, err = injectionLabelIndex(c.ID2Label, m.Card.MaliciousLabel); err != nil {
		return err
	}
	m.labelCount, m.vocabSize = len(c.ID2Label), c.VocabSize
	m.windowTokenCount = maxWindowTokens
	if c.MaxPositionEmbeddings > 0 {
		m.windowTokenCount = min(m.windowTokenCount, c.MaxPositionEmbeddings)
	}
	if c.Type == "roberta" || c.Type == "xlm-roberta" {
		m.windowTokenCount -= 2 // RoBERTa numbers positions from the number after the padding token's, so two positions are unused
	}
	if m.Card.MaxWindowTokens > 0 {
		m.windowTokenCount = min(m.windowTokenCount, m.Card.MaxWindowTokens)
	}
	if m.windowTokenCount < minWindowTokens {
		return fmt.Errorf("model: windows of %d tokens are too short; set max_length in shield.json to at least %d", m.windowTokenCount, minWindowTokens)
	}
	if c.VocabSize <= 0 {
		return errors.New("model: config.json: vocab_size is missing; use the config.json of the model")
	}
	return nil
}

// injectionLabelIndex returns the index of the label that means an injection.
func injectionLabelIndex(labels map[string]string, name string) (int, error) {
	if len(labels) < 2 || len(labels) > 64 {
		return 0, fmt.Errorf("model: config.json: id2label has %d labels; expected two: SAFE and INJECTION; use a model with these labels", len(labels))
	}
	want := name
	if want == "" {
		want = "INJECTION"
	}
	names := make([]string, len(labels))
	for i := range names {
		label, ok := labels[fmt.Sprint(i)]
		if !ok {
			return 0, fmt.Errorf("model: config.json: label %d is missing in id2label; use the config.json of the model", i)
		}
		names[i] = label
	}
	found := -1
	for i, label := range names {
		if strings.EqualFold(label, want) {
			if found >= 0 {
				return 0, fmt.Errorf("model: two labels have the name %s; rename one in id2label of config.json", want)
			}
			found = i
		}
	}
	if found < 0 {
		return 0, fmt.Errorf("model: label %s is missing, the labels are %s; set malicious_label in shield.json to the one that means an injection", want, strings.Join(names, ", "))
	}
	return found, nil
}

// loadTokenizerAndGraph loads tokenizer and graph in parallel.
func (m *Model) loadTokenizerAndGraph() (*loadedModel, error) {
	var l loadedModel
	var tokenErr, graphErr error
	var wg sync.WaitGroup
	wg.Go(func() { l.tokenizer, tokenErr = m.loadTokenizer() })
	wg.Go(func() { l.session, graphErr = m.readGraph() })
	wg.Wait()
	switch {
	case tokenErr != nil && graphErr != nil:
		return nil, fmt.Errorf("%w; %w", tokenErr, graphErr) // one line, unlike errors.Join
	case tokenErr != nil:
		return nil, tokenErr
	case graphErr != nil:
		return nil, graphErr
	}
	if m.windowTokenCount < minWindowTokens+l.tokenizer.SpecialTokenCount() {
		return nil, fmt.Errorf("model: windows of %d tokens are too short, since tokenizer.json adds %d tokens to each text; raise max_length in shield.json", m.windowTokenCount, l.tokenizer.SpecialTokenCount())
	}
	// Run the model once, so that a model that cannot run is an error now and not at the first text.
	ids := l.tokenizer.AddSpecialTokens(nil, nil)
	logits, err := l.session.run(context.Background(), ids)
	if err == nil && len(logits) != m.labelCount {
		err = fmt.Errorf("model: model.onnx returns %d numbers, but config.json has %d labels; use the files of one model", len(logits), m.labelCount)
	}
	if err != nil {
		return nil, fmt.Errorf("model: model.onnx failed on a test input: %w; install the model again with 'shield model pull --force'", err)
	}
	if !m.ScoresOnlyOneTextPerProcess {
		releaseResidentProgramFilePages()
	}
	return &l, nil
}

// preprocessedModelFolder is implemented by a model folder that contains its large parts in preprocessed
// form: the tokenizer, the graph, and the weights of the linear model.
type preprocessedModelFolder interface {
	PackedTokenizerData() string
	PackedGraph() ([]byte, error)
	NGramWeightTableData() string
}

// A modelGraphFormat is the format of a stored graph.
type modelGraphFormat uint8

const (
	modelGraphFormatONNX          modelGraphFormat = iota // ONNX, as it was exported
	modelGraphFormatOptimizedONNX                         // ONNX, already optimised; optimising again would take as long as loading
	modelGraphFormatORT                                   // optimised, in ONNX Runtime's own format
)

func (m *Model) openTokenizerWithoutVocabCheck() (*tokenizer.Tokenizer, error) {
	if m.preprocessedFolder != nil {
		return tokenizer.OpenPacked(m.preprocessedFolder.PackedTokenizerData())
	}
	data, err := readFile(m.files, "tokenizer.json", maxModelJSONFileBytes)
	if err != nil {
		return nil, err
	}
	read := tokenizer.OpenUserSuppliedTokenizer
	if m.isPublishedByShield {
		read = tokenizer.OpenBuiltinTokenizer
	}
	t, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return t, nil
}

func (m *Model) openVocabCheckedTokenizer() (*tokenizer.Tokenizer, error) {
	t, err := m.openTokenizerWithoutVocabCheck()
	if err != nil {
		return nil, err
	}
	if t.VocabSize() > m.vocabSize {
		return nil, fmt.Errorf("model: tokenizer.json has token numbers up to %d, but the model has only %d tokens; use the files of one model", t.VocabSize()-1, m.vocabSize)
	}
	return t, nil
}

func (m *Model) readGraph() (modelGraphRunner, error) {
	path, err := m.onnxRuntimePath()
	if err != nil {
		return nil, err
	}
	if m.preprocessedFolder != nil {
		data, err := m.preprocessedFolder.PackedGraph()
		if err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		return newSession(path, data, &shieldModelGraph, modelGraphFormatORT, m.ScoresOnlyOneTextPerProcess)
	}
	data, err := readFile(m.files, m.graphFile, maxModelFileBytes)
	if err != nil {
		return nil, err
	}
	g, err := parseONNXGraph(data)
	if err != nil {
		return nil, err
	}
	f := modelGraphFormatONNX
	if m.Card.IsGraphOptimized {
		f = modelGraphFormatOptimizedONNX
	}
	return newSession(path, data, g, f, m.ScoresOnlyOneTextPerProcess)
}

// shieldModelGraph is the result of [parseONNXGraph] for shield's own model.
var shieldModelGraph = onnxGraph{
	inputs:  []tensorInfo{{"input_ids", elemInt64}},
	outputs: []tensorInfo{{"logits", elemFloat}},
}

// unsafeBytesOfString returns the bytes of a string without a copy. They must not be modified.
func unsafeBytesOfString(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Runtime loads the model, and returns the path and the release of the ONNX
// Runtime that runs it.
func (m *Model) Runtime() (path, version string, err error) {
	if _, err := m.load(); err != nil {
		return "", "", err
	}
	path, err = m.onnxRuntimePath()
	return path, onnxRuntimeVersion(), err
}

// Score implements [InjectionScorer]. A text longer than the model's window is split into overlapping
// windows, and the most suspicious window counts. The linear model ranks the windows, and so
// decides which of them the full model reads.
func (m *Model) Score(ctx context.Context, text string) (InjectionScore, error) {
	tokens, err := m.loadTokenizer()
	if err != nil {
		_, all := m.load() // load also reports errors of the graph, which take precedence
		return InjectionScore{}, cmp.Or(all, err)
	}
	ids, err := tokens.Encode(ctx, text)
	if errors.Is(err, tokenizer.ErrTooLong) {
		return InjectionScore{}, ErrTooLong // decided before the graph is loaded, which takes memory
	}
	if err != nil {
		return InjectionScore{}, fmt.Errorf("model: %w", err)
	}
	l, err := m.load()
	if err != nil {
		return InjectionScore{}, err
	}
	return m.score(ctx, l, ids)
}

func (m *Model) score(ctx context.Context, l *loadedModel, ids []int64) (InjectionScore, error) {
	var worst float64
	windows, whole := m.splitWindows(ids, l.tokenizer.SpecialTokenCount())
	most := m.sortWindowsByMaxProbability(l.tokenizer, windows)
	for i, window := range windows {
		if i > 0 && most != nil && most[i] <= worst {
			break // the remaining windows cannot be more suspicious than one that was read
		}
		logits, err := l.session.run(ctx, l.tokenizer.AddSpecialTokens(nil, window))
		if err != nil {
			return InjectionScore{}, fmt.Errorf("model: %w", err)
		}
		p, err := probability(logits, m.maliciousLabelIndex)
		if err != nil {
			return InjectionScore{}, err
		}
		worst = max(worst, p)
	}
	s := m.scoreForProbability(worst)
	if !whole && !s.HasInjectionLabel {
		// An attack in the part that was read counts, but a text is only safe if all of it was read.
		return InjectionScore{}, ErrTooLong
	}
	return s, nil
}

// splitWindows splits the tokens of a text into overlapping windows; overhead is the number of
// special tokens of a window. coversAllTokens is false if the text has more tokens than the windows
// can contain.
func (m *Model) splitWindows(ids []int64, overhead int) (windows [][]int64, coversAllTokens bool) {
	room := m.windowTokenCount - overhead
	for len(windows) < m.maxWindowCount() {
		windows = append(windows, ids[:min(room, len(ids))])
		if len(ids) <= room {
			return windows, true
		}
		ids = ids[room-room/4:]
	}
	return windows, false
}

// maxWindowCount returns the maximum number of windows that are read of one text.
func (m *Model) maxWindowCount() int {
	return min(maxTokenWindowsPerText, maxTokensPerText/m.windowTokenCount)
}

// scoreForProbability returns the more probable label for the probability of an injection.
func (m *Model) scoreForProbability(injectionProbability float64) InjectionScore {
	if injectionProbability >= 0.5 {
		return InjectionScore{HasInjectionLabel: true, LabelConfidence: injectionProbability}
	}
	return InjectionScore{LabelConfidence: 1 - injectionProbability}
}

// ModelFilesDigest returns the SHA-256 over names and contents of a model's files, in
// hex.
func ModelFilesDigest(files fs.FS) (string, error) {
	h := sha256.New()
	names := append([]string{"config.json", "tokenizer.json", "shield.json"}, graphFileCandidates[:]...)
	sorted.SortStrings(names)
	for _, name := range names {
		f, err := files.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("model: %w", err)
		}
		one := sha256.New()
		n, err := io.Copy(one, io.LimitReader(f, maxModelFileBytes+1))
		f.Close()
		if err == nil && n > maxModelFileBytes {
			err = fmt.Errorf("%s is larger than %d MiB; use a smaller model", name, maxModelFileBytes>>20)
		}
		if err != nil {
			return "", fmt.Errorf("model: %w", err)
		}
		fmt.Fprintf(h, "%s %x\n", name, one.Sum(nil))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readFile reads a regular file of at most limit bytes.
func readFile(files fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("model: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("model: %s is not a regular file; put a regular file there", name)
	case info.Size() > limit:
		return nil, fmt.Errorf("model: %s is larger than %d MiB; use a smaller model", name, limit>>20)
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return data, nil
}
