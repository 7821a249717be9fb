package classify

import (
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

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/tokenizer"
)

// ErrNoRuntime says that this build cannot run models in-process.
var ErrNoRuntime = errors.New("this build has no ONNX Runtime")

// A Card is a model's shield.json: what shield has to know of it beside what
// HuggingFace's files say. Every field may be absent.
type Card struct {
	Name           string             `json:"name,omitzero"`
	Version        string             `json:"version,omitzero"`
	Threshold      float64            `json:"threshold,omitzero"`       // least confidence at which an injection is blocked, 0–1; 0: the setting's
	Thresholds     map[string]float64 `json:"thresholds,omitzero"`      // the same for types of action
	SafeThresholds map[string]float64 `json:"safe_thresholds,omitzero"` // types of action at whose texts the model must be so confident for SAFE to count, 0–1; absent: 0
	SkipTypes      []string           `json:"skip_types,omitzero"`      // action types that the model does not judge
	MaxLength      int                `json:"max_length,omitzero"`      // tokens of a window; 0: as many as the model has positions
	MaliciousLabel string             `json:"malicious_label,omitzero"` // which label is an injection; "": the one named INJECTION
	Optimized      bool               `json:"optimized,omitzero"`       // the graph was saved after ONNX Runtime had optimised it
	Licence        string             `json:"licence,omitzero"`
	Sources        jsontext.Value     `json:"sources,omitzero"`  // what it was trained on
	Measured       jsontext.Value     `json:"measured,omitzero"` // what it was measured on
}

// config is what shield reads of a HuggingFace config.json.
type config struct {
	ID2Label  map[string]string `json:"id2label"`
	Positions int               `json:"max_position_embeddings"`
	Vocab     int               `json:"vocab_size"`
	Padding   int               `json:"pad_token_id"`
	Type      string            `json:"model_type"`
}

// Bounds of a model's files, in bytes, and of how a text is read.
const (
	maxModelFile = 1 << 30
	maxJSONFile  = 32 << 20
	maxLength    = 512 // tokens of a window
	minLength    = 16
	maxWindows   = 32      // of one text
	maxTokens    = 4 << 10 // of all windows of one text: what a window takes grows faster than its length
)

// modelFiles are the places where exports keep the graph.
var modelFiles = [...]string{"model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx"}

// A Model is a folder with a HuggingFace export for sequence classification:
// model.onnx, tokenizer.json, config.json and, optionally, shield.json. It is
// loaded when the first text is scored. Goroutines share it.
type Model struct {
	Card   Card
	Digest string // SHA-256 over the names and contents of its files, in hex

	files     fs.FS
	own       bool // shield's own model, whose tokenizer is read by shield's own code
	graphFile string
	malicious int // index of the label
	labels    int
	length    int // tokens of a window, special tokens among them
	vocab     int
	runtime   func() (string, error)
	load      func() (*loaded, error)
}

// A loaded model is what scoring needs.
type loaded struct {
	tokens  *tokenizer.Tokenizer
	session runner
}

// A runner runs a graph on the tokens of one window and returns its logits.
type runner interface {
	run(ctx context.Context, ids []int64) ([]float32, error)
}

// OpenModel reads what is to know of the model in a folder, and refuses one
// that it does not understand. runtime returns the path of ONNX Runtime when
// the model is loaded. digest is that of shield's own model, which is known
// already; the files of a user's model, for which it is "", are hashed.
func OpenModel(files fs.FS, digest string, runtime func() (string, error)) (*Model, error) {
	m := &Model{files: files, own: digest != "", Digest: digest, runtime: runtime}
	if info, err := fs.Stat(files, "."); err != nil || !info.IsDir() {
		return nil, errors.New("model: no such folder")
	}
	if err := m.readCard(); err != nil {
		return nil, err
	}
	if err := m.readConfig(); err != nil {
		return nil, err
	}
	for _, name := range modelFiles {
		if info, err := fs.Stat(files, name); err == nil && info.Mode().IsRegular() {
			m.graphFile = name
			break
		}
	}
	if m.graphFile == "" {
		return nil, errors.New("model: no model.onnx in the folder")
	}
	if m.Digest == "" {
		var err error
		if m.Digest, err = Digest(files); err != nil {
			return nil, err
		}
	}
	m.load = sync.OnceValues(m.read)
	return m, nil
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
		return fmt.Errorf("model: shield.json: %w", err)
	}
	limits := []float64{m.Card.Threshold}
	for _, byType := range []map[string]float64{m.Card.Thresholds, m.Card.SafeThresholds} {
		limits = slices.AppendSeq(limits, maps.Values(byType))
	}
	for _, t := range limits {
		if t < 0 || t > 1 {
			return fmt.Errorf("model: shield.json: threshold %v is not between 0 and 1", t)
		}
	}
	return nil
}

func (m *Model) readConfig() error {
	data, err := readFile(m.files, "config.json", 1<<20)
	if err != nil {
		return err
	}
	var c config
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("model: config.json: %w", err)
	}
	if m.malicious, err = maliciousLabel(c.ID2Label, m.Card.MaliciousLabel); err != nil {
		return err
	}
	m.labels, m.vocab = len(c.ID2Label), c.Vocab
	m.length = maxLength
	if c.Positions > 0 {
		m.length = min(m.length, c.Positions)
	}
	if c.Type == "roberta" || c.Type == "xlm-roberta" {
		m.length -= 2 // their positions are counted from the padding's number on
	}
	if m.Card.MaxLength > 0 {
		m.length = min(m.length, m.Card.MaxLength)
	}
	if m.length < minLength {
		return fmt.Errorf("model: windows of %d tokens are too short; at least %d are needed", m.length, minLength)
	}
	if c.Vocab <= 0 {
		return errors.New("model: config.json: vocab_size is missing")
	}
	return nil
}

// maliciousLabel returns the number of the label that means an injection.
func maliciousLabel(labels map[string]string, name string) (int, error) {
	if len(labels) < 2 || len(labels) > 64 {
		return 0, fmt.Errorf("model: config.json: id2label has %d labels; SAFE and INJECTION are needed", len(labels))
	}
	want := name
	if want == "" {
		want = "INJECTION"
	}
	names := make([]string, len(labels))
	for i := range names {
		label, ok := labels[fmt.Sprint(i)]
		if !ok {
			return 0, fmt.Errorf("model: config.json: id2label does not name label %d", i)
		}
		names[i] = label
	}
	found := -1
	for i, label := range names {
		if strings.EqualFold(label, want) {
			if found >= 0 {
				return 0, fmt.Errorf("model: two labels are called %s", want)
			}
			found = i
		}
	}
	if found < 0 {
		return 0, fmt.Errorf("model: no label is called %s, but %s; name the malicious one as malicious_label in shield.json", want, strings.Join(names, ", "))
	}
	return found, nil
}

// read loads tokenizer and graph, both at once.
func (m *Model) read() (*loaded, error) {
	var l loaded
	var tokenErr, graphErr error
	var wg sync.WaitGroup
	wg.Go(func() { l.tokens, tokenErr = m.readTokenizer() })
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
	if m.length < minLength+l.tokens.Overhead() {
		return nil, fmt.Errorf("model: windows of %d tokens are too short; tokenizer.json puts %d around each text", m.length, l.tokens.Overhead())
	}
	// What a model cannot run at all must be known now.
	ids := l.tokens.Frame(nil, nil)
	logits, err := l.session.run(context.Background(), ids)
	if err == nil && len(logits) != m.labels {
		err = fmt.Errorf("the graph answers with %d numbers, config.json names %d labels", len(logits), m.labels)
	}
	if err != nil {
		return nil, fmt.Errorf("model: first run: %w", err)
	}
	return &l, nil
}

func (m *Model) readTokenizer() (t *tokenizer.Tokenizer, err error) {
	data, err := readFile(m.files, "tokenizer.json", maxJSONFile)
	if err != nil {
		return nil, err
	}
	read := tokenizer.OpenForeign
	if m.own {
		read = tokenizer.Open
	}
	if t, err = read(data); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if t.Size() > m.vocab {
		return nil, fmt.Errorf("model: tokenizer.json has numbers up to %d, the model only %d; they do not belong together", t.Size()-1, m.vocab)
	}
	return t, nil
}

func (m *Model) readGraph() (runner, error) {
	path, err := m.runtime()
	if err != nil {
		return nil, err
	}
	data, err := readFile(m.files, m.graphFile, maxModelFile)
	if err != nil {
		return nil, err
	}
	g, err := readGraph(data)
	if err != nil {
		return nil, err
	}
	return newSession(path, data, g, m.Card.Optimized)
}

// Runtime loads the model, and returns the path and the release of the ONNX
// Runtime that runs it.
func (m *Model) Runtime() (path, version string, err error) {
	if _, err := m.load(); err != nil {
		return "", "", err
	}
	path, err = m.runtime()
	return path, runtimeVersion(), err
}

// Score implements [Scorer]. Text that is longer than the model's window is
// read in windows that overlap, and the most suspicious one counts.
func (m *Model) Score(ctx context.Context, text string) (Score, error) {
	l, err := m.load()
	if err != nil {
		return Score{}, err
	}
	ids, err := l.tokens.Encode(ctx, text)
	if errors.Is(err, tokenizer.ErrTooLong) {
		return Score{}, ErrTooLong
	}
	if err != nil {
		return Score{}, fmt.Errorf("model: %w", err)
	}
	return m.score(ctx, l, ids)
}

func (m *Model) score(ctx context.Context, l *loaded, ids []int64) (Score, error) {
	room := m.length - l.tokens.Overhead()
	windows := m.windows()
	var worst float64
	for n := 0; ; n++ {
		if n == windows {
			// What was read counts if it is an attack; safe is only what was
			// read whole.
			if s := m.label(worst); s.Injection {
				return s, nil
			}
			return Score{}, ErrTooLong
		}
		logits, err := l.session.run(ctx, l.tokens.Frame(nil, ids[:min(room, len(ids))]))
		if err != nil {
			return Score{}, fmt.Errorf("model: %w", err)
		}
		p, err := probability(logits, m.malicious)
		if err != nil {
			return Score{}, err
		}
		worst = max(worst, p)
		if len(ids) <= room {
			return m.label(worst), nil
		}
		ids = ids[room-room/4:]
	}
}

// windows returns how many windows of one text are read.
func (m *Model) windows() int { return min(maxWindows, maxTokens/m.length) }

// label turns the probability of an injection into the more probable label.
func (m *Model) label(p float64) Score {
	if p >= 0.5 {
		return Score{Injection: true, Confidence: p}
	}
	return Score{Confidence: 1 - p}
}

// Digest returns the SHA-256 over names and contents of a model's files, in
// hex.
func Digest(files fs.FS) (string, error) {
	h := sha256.New()
	names := append([]string{"config.json", "tokenizer.json", "shield.json"}, modelFiles[:]...)
	slices.Sort(names)
	for _, name := range names {
		f, err := files.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("model: %w", err)
		}
		one := sha256.New()
		n, err := io.Copy(one, io.LimitReader(f, maxModelFile+1))
		f.Close()
		if err == nil && n > maxModelFile {
			err = fmt.Errorf("%s is larger than %d MiB", name, maxModelFile>>20)
		}
		if err != nil {
			return "", fmt.Errorf("model: %w", err)
		}
		fmt.Fprintf(h, "%s %x\n", name, one.Sum(nil))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readFile reads a plain file of at most limit bytes.
func readFile(files fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("model: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("model: %s is not a plain file", name)
	case info.Size() > limit:
		return nil, fmt.Errorf("model: %s is larger than %d MiB", name, limit>>20)
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return data, nil
}
