package verdict

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"slices"
	"strconv"
	"sync"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/pkg/action"
)

// TierSet is a set of tiers that have judged an action.
type TierSet uint8

// The tiers as bits of a [TierSet]. A seal contains the set of tiers that have judged the action.
const (
	TierBitPolicy TierSet = 1 << iota
	TierBitClassify
	TierBitEvaluate
	TierBitApprove
)

// Fingerprints identify everything besides the action on which a verdict depends. Two installations, or two
// stages of a pipe, with different fingerprints do not accept each other's verdicts.
type Fingerprints struct {
	Policy, ClassifierRules, ClassifierModel, Config string
}

// digest returns the first 16 bytes of a SHA-256 over the fingerprints. The lengths before the texts make the
// encoding unambiguous, so different Fingerprints have the same digest only by a hash collision.
func (f Fingerprints) digest() (d [fingerprintsDigestBytes]byte) {
	h := sha256.New()
	for _, s := range [...]string{f.Policy, f.ClassifierRules, f.ClassifierModel, f.Config} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	copy(d[:], h.Sum(nil))
	return d
}

// A seal is the base64url form of
//
//	version (1 byte) | judged tiers (1) | digest of the fingerprints (16) | HMAC-SHA256 (32)
//
// The judged tiers are the [TierSet] of the tiers that have judged the action. The [Fingerprints] identify
// policy, rules, model and configuration. The HMAC covers the canonical JSON of the verdict without its seal,
// followed by the first 18 bytes of the seal. The digest is readable, so that a verdict from another
// configuration can be distinguished from a verdict of another installation.
const (
	sealVersion             = 1
	fingerprintsDigestBytes = 16
	sealHeaderBytes         = 2 + fingerprintsDigestBytes
	sealSize                = sealHeaderBytes + sha256.Size
)

// Errors of a seal.
var (
	errUnsealed                = errors.New("the verdict is not sealed by this installation; judge the action again with 'shield run'")
	errSealFingerprintMismatch = errors.New("the verdict is sealed under another policy, rule set, model or configuration; run all stages of a pipe with the same settings")
)

// A Sealer seals verdicts, and verifies seals made with the same key. Goroutines may share it.
type Sealer struct {
	sealHeader [sealHeaderBytes]byte // start of every seal: version and digest of the fingerprints; the byte for the judged tiers is 0
	macs       sync.Pool             // of *mac
}

type mac struct {
	hash.Hash
	buf []byte
}

var sealEncoding = base64.RawURLEncoding.Strict() // strict, so that a seal has only one encoding

// NewSealer returns a sealer for a key, see [LoadKey], and the fingerprints of a configuration.
func NewSealer(key [KeySize]byte, f Fingerprints) *Sealer {
	s := &Sealer{}
	s.sealHeader[0] = sealVersion
	digest := f.digest()
	copy(s.sealHeader[2:], digest[:])
	s.macs.New = func() any { return &mac{Hash: hmac.New(sha256.New, key[:])} }
	return s
}

// Seal sets v.Seal. The seal covers every other field, as written by [Verdict.AppendJSON], and the stages
// that have judged the action. An Action that is not valid JSON is removed, because it would make the whole
// line invalid.
func (s *Sealer) Seal(v *Verdict, judgedTiers TierSet) {
	s.SealWithCanonicalAction(v, judgedTiers, nil)
}

// SealWithCanonicalAction is like [Sealer.Seal] with the canonical JSON of v.Action given; nil computes it.
func (s *Sealer) SealWithCanonicalAction(v *Verdict, judgedTiers TierSet, canonicalAction []byte) {
	m := s.macs.Get().(*mac)
	defer s.returnMACToPool(m)
	if m.buf = v.appendCanonical(m.buf[:0], canonicalAction); m.buf == nil {
		v.Action = nil
		m.buf = v.appendCanonical(nil, nil)
	}
	var seal [sealSize]byte
	copy(seal[:], s.sealHeader[:])
	seal[1] = byte(judgedTiers)
	m.appendMAC(seal[:])
	var text [(sealSize*8 + 5) / 6]byte
	sealEncoding.Encode(text[:], seal[:])
	v.Seal = string(text[:])
}

// verifySeal verifies the seal of a verdict with the given members and returns the stages that have judged it. Its
// errors are errUnsealed and errSealFingerprintMismatch.
func (s *Sealer) verifySeal(members []canonjson.Member, text string) (TierSet, error) {
	var seal, want [sealSize]byte
	if len(text) != sealEncoding.EncodedLen(sealSize) {
		return 0, errUnsealed
	}
	if n, err := sealEncoding.Decode(seal[:], []byte(text)); err != nil || n != sealSize || seal[0] != sealVersion {
		return 0, errUnsealed
	}
	m := s.macs.Get().(*mac)
	defer s.returnMACToPool(m)
	rest := slices.DeleteFunc(slices.Clone(members), func(m canonjson.Member) bool { return m.Name == "seal" })
	m.buf = canonjson.AppendObject(m.buf[:0], rest)
	copy(want[:sealHeaderBytes], seal[:sealHeaderBytes])
	m.appendMAC(want[:])
	if subtle.ConstantTimeCompare(want[:], seal[:]) != 1 {
		return 0, errUnsealed
	}
	if subtle.ConstantTimeCompare(seal[2:sealHeaderBytes], s.sealHeader[2:]) != 1 {
		return 0, errSealFingerprintMismatch
	}
	return TierSet(seal[1]), nil
}

// appendMAC completes a seal whose head is already set: it appends the HMAC of m.buf and the head.
func (m *mac) appendMAC(seal []byte) {
	m.Reset()
	m.Write(m.buf)
	m.Write(seal[:sealHeaderBytes])
	m.Sum(seal[:sealHeaderBytes])
}

func (s *Sealer) returnMACToPool(m *mac) {
	if cap(m.buf) > 64<<10 { // do not keep a large buffer in the pool
		m.buf = nil
	}
	s.macs.Put(m)
}

// appendCanonical appends the canonical JSON of the verdict without its seal: the output of
// AppendJSON, canonicalised. canonicalAction is the canonical JSON of Action, or nil. It returns
// nil if Action is not valid JSON.
func (v *Verdict) appendCanonical(dst, canonicalAction []byte) []byte {
	dst = append(dst, '{')
	if len(v.Action) > 0 {
		dst = append(dst, `"action":`...)
		if canonicalAction != nil {
			dst = append(dst, canonicalAction...)
		} else {
			var err error
			if dst, err = canonjson.Append(dst, v.Action, maxVerdictNestingDepth); err != nil {
				return nil
			}
		}
		dst = append(dst, ',')
	}
	if v.ActionHash != "" {
		dst = append(canonicalStyle.appendString(append(dst, `"action_hash":`...), v.ActionHash), ',')
	}
	if len(v.AllowConditions) > 0 {
		dst = append(canonicalStyle.appendStringListUnlessEmpty(dst, `"conditions":`, v.AllowConditions), ',')
	}
	dst = appendConfidence(append(dst, `"confidence":`...), v.Confidence)
	dst = append(append(append(dst, `,"decision":"`...), v.Decision.jsonOutputName()...), '"')
	if v.IsAllowedDespiteFailure {
		dst = append(dst, `,"degraded":true`...)
	}
	dst = canonicalStyle.appendStringUnlessEmpty(dst, `,"error":`, v.ErrorCode)
	dst = appendTime(append(dst, `,"evaluated_at":`...), v.JudgedAt)
	dst = appendTime(append(dst, `,"expires_at":`...), v.Expires)
	dst = canonicalStyle.appendStringUnlessEmpty(dst, `,"id":`, v.ActionID)
	dst = strconv.AppendInt(append(dst, `,"line":`...), int64(v.Line), 10)
	if v.NextTier != 0 {
		dst = strconv.AppendInt(append(dst, `,"next_tier":`...), int64(v.NextTier), 10)
	}
	dst = canonicalStyle.appendStringUnlessEmpty(dst, `,"prompt_hash":`, v.EvaluatorPromptHash)
	dst = canonicalStyle.appendString(append(dst, `,"reasoning":`...), v.Reasoning)
	dst = canonicalStyle.appendStringUnlessEmpty(dst, `,"ref":`, v.RefusalRef)
	dst = canonicalStyle.appendStringUnlessEmpty(dst, `,"rule":`, v.Rule)
	dst = strconv.AppendInt(append(dst, `,"tier":`...), int64(v.Tier), 10)
	if len(v.Trail) > 0 {
		dst = append(dst, `,"trail":[`...)
		for i := range v.Trail {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.Trail[i].appendCanonical(dst)
		}
		dst = append(dst, ']')
	}
	dst = canonicalStyle.appendStringUnlessEmpty(dst, `,"undo":`, v.BackupSetID)
	return append(dst, '}')
}

func (s *TierStep) appendCanonical(dst []byte) []byte {
	dst = append(dst, '{')
	if s.AllowedPendingHigherTier {
		dst = append(dst, `"allows":true,`...)
	}
	dst = appendConfidence(append(dst, `"confidence":`...), s.Confidence)
	dst = append(append(append(dst, `,"decision":"`...), s.Decision.jsonOutputName()...), '"')
	dst = canonicalStyle.appendRawJSONUnlessEmpty(dst, `,"effects":`, s.Effects)
	dst = canonicalStyle.appendStringUnlessEmpty(dst, `,"error":`, s.ErrorCode)
	if s.LatencyMicroseconds != 0 {
		dst = strconv.AppendInt(append(dst, `,"latency_us":`...), s.LatencyMicroseconds, 10)
	}
	dst = canonicalStyle.appendStringUnlessEmpty(dst, `,"reasoning":`, s.Reasoning)
	dst = canonicalStyle.appendStringUnlessEmpty(dst, `,"rule":`, s.Rule)
	dst = canonicalStyle.appendRawJSONUnlessEmpty(dst, `,"session":`, s.SessionDataForNextProcess)
	dst = canonicalStyle.appendString(append(dst, `,"source":`...), s.JudgeName)
	dst = strconv.AppendInt(append(dst, `,"tier":`...), int64(s.Tier), 10)
	dst = canonicalStyle.appendRawJSONUnlessEmpty(dst, `,"views":`, s.JudgedActionTextVariants)
	return append(dst, '}')
}

// canonicalStyle is the form of RFC 8785.
var canonicalStyle = jsonStyle{
	appendString: canonjson.AppendString,
	appendRawJSON: func(dst, raw []byte) []byte {
		out, err := canonjson.Append(dst, raw, maxVerdictNestingDepth)
		if err != nil {
			return append(dst, "null"...) // invalid: the seal will not verify
		}
		return out
	},
}

// maxVerdictNestingDepth is the maximum nesting of a verdict: that of an action, plus the verdict around it and the trail.
const maxVerdictNestingDepth = action.MaxJSONNestingDepth + 8
