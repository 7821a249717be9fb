package peer

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var question = Question{
	AskingProgramPath: "/usr/bin/shield", AskingProcessWorkingDir: "/home/me/app", ParentPIDOfAskingProcess: 7,
	AskingProgramArgs: []string{"hook", "claude-code", "--judge"}, Environ: []string{"HOME=/home/me", "A=1\n2"}, AskingProcessStdin: []byte("{\"a\":1}\x00\n"),
}

// TestRoundTrip holds that what is asked and answered arrives as it was sent.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	key := [KeySize]byte{1, 2, 3}
	for _, q := range []Question{{}, question, {AskingProgramArgs: []string{""}, AskingProcessStdin: bytes.Repeat([]byte("x"), 100<<10)}} {
		asked, message, err := NewQuestion(&key, &q)
		if err != nil {
			t.Fatal(err)
		}
		large := false
		received, got, err := ReadQuestion(bytes.NewReader(message), &key, func() { large = true })
		if err != nil || large != (len(q.AskingProcessStdin) > 64<<10) {
			t.Fatal(large, err)
		}
		if diff := cmp.Diff(q.encode(), got.encode()); diff != "" {
			t.Errorf("another question arrives: %s", diff)
		}
		for _, want := range []Answer{{ServiceDecided: true, CommandStdout: []byte("{}\n")}, {CommandStdout: []byte{}}} {
			ans, err := asked.ReadAnswer(bytes.NewReader(received.EncodeAnswer(want)))
			if err != nil || !cmp.Equal(ans, want) {
				t.Errorf("answer %+v, want %+v: %v", ans, want, err)
			}
		}
	}
}

// TestChangedInBetween holds that no byte of a question or of an answer can be changed,
// left out or added, and that an answer counts for its own question alone.
func TestChangedInBetween(t *testing.T) {
	t.Parallel()
	key := [KeySize]byte{1}
	asked, message, err := NewQuestion(&key, &question)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, m []byte) {
		t.Helper()
		if _, _, err := ReadQuestion(bytes.NewReader(m), &key, func() {}); err == nil {
			t.Errorf("a question is read with %s", what)
		}
	}
	received, _, err := ReadQuestion(bytes.NewReader(message), &key, func() {})
	if err != nil {
		t.Fatal(err)
	}
	answer := received.EncodeAnswer(Answer{CommandStdout: []byte("no")})
	for i := range message {
		m := bytes.Clone(message)
		m[i] ^= 1
		refused("a bit changed", m)
	}
	refused("its end missing", message[:len(message)-1])
	for i := range answer {
		m := bytes.Clone(answer)
		m[i] ^= 1
		if ans, err := asked.ReadAnswer(bytes.NewReader(m)); err == nil {
			t.Errorf("byte %d of an answer can be changed: %+v", i, ans)
		}
	}
	again, _, err := NewQuestion(&key, &question)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.ReadAnswer(bytes.NewReader(answer)); !errors.Is(err, ErrWrongMAC) {
		t.Errorf("the answer to an earlier question counts: %v", err)
	}
	other := [KeySize]byte{2}
	if _, _, err := ReadQuestion(bytes.NewReader(message), &other, func() {}); !errors.Is(err, ErrWrongMAC) {
		t.Errorf("another key reads a question: %v", err)
	}
}

// TestTooLarge holds that neither side reads more than its bound, whatever the other
// says is to come.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	key := [KeySize]byte{}
	if _, _, err := NewQuestion(&key, &Question{AskingProcessStdin: make([]byte, MaxQuestionBytes)}); err == nil {
		t.Error("a question beyond the bound is sent")
	}
	head := protocolMagic + strings.Repeat("n", nonceSize) + "\xff\xff\xff\xff"
	in := strings.NewReader(head + strings.Repeat("x", 1<<10))
	if _, _, err := ReadQuestion(in, &key, func() { t.Error("it is waited for") }); err == nil || in.Len() != 1<<10 {
		t.Errorf("%d bytes are left of a question beyond the bound: %v", in.Len(), err)
	}
	asked := &QuestionExchange{key: &key}
	if _, err := asked.ReadAnswer(io.MultiReader(strings.NewReader("\xff\xff\xff\xff"), strings.NewReader("x"))); err == nil {
		t.Error("an answer beyond the bound is read")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(question.encode())
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := decode(b)
		if err == nil && !bytes.Equal(q.encode(), b) {
			t.Errorf("%q is read as %+v", b, q)
		}
	})
}
