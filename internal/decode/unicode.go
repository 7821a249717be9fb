package decode

import (
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FoldUnicodeLookalikes returns a text in compatibility form (NFKC: full-width, mathematical and circled letters become
// plain ones), with look-alikes replaced by Latin letters, and without invisible characters and
// combining marks. ASCII text is returned unchanged.
func FoldUnicodeLookalikes(s string) string {
	if IsASCII(s) {
		return s
	}
	look := lookalikes()
	plain := func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		if Invisible(r) || isCombiningMark(r) {
			return -1
		}
		if p, ok := look[r]; ok {
			return p
		}
		return r
	}
	// Compatibility form can turn look-alikes into other characters, and other characters into
	// look-alikes, so map before and after it.
	return strings.Map(plain, norm.NFKC.String(strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		if p, ok := look[r]; ok {
			return p
		}
		return r
	}, s)))
}

// Invisible reports whether a character has no visible form: zero-width, bidirectional control, tag or
// variation selector.
func Invisible(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5,
		0x180b <= r && r <= 0x180f,
		0x200b <= r && r <= 0x200f,
		0x202a <= r && r <= 0x202e,
		0x2060 <= r && r <= 0x206f,
		r == 0x3164,
		0xfe00 <= r && r <= 0xfe0f,
		r == 0xfeff, r == 0xffa0,
		0xfff9 <= r && r <= 0xfffb,
		0x1d173 <= r && r <= 0x1d17a,
		0xe0000 <= r && r <= 0xe0fff:
		return true
	}
	return false
}

// isCombiningMark reports whether a character is drawn over the one before it.
func isCombiningMark(r rune) bool {
	return 0x300 <= r && r <= 0x36f || 0x1ab0 <= r && r <= 0x1aff || 0x1dc0 <= r && r <= 0x1dff ||
		0x20d0 <= r && r <= 0x20ff || 0xfe20 <= r && r <= 0xfe2f
}

// lookalikeTable lists plain characters, each followed by its look-alikes that compatibility form does not
// convert.
const lookalikeTable = "" +
	"aɑαаᴀꭺ" + "\nbƄʙвьᏏ" + "\ncϲсᴄⲥ" + "\ndԁᏧᴅ" + "\neеєҽᴇℯ" + "\nfƒꜰ" + "\ngɡցɢ" + "\nhһհʜ" + "\niıɩіɪӏι" +
	"\njјյᴊ" + "\nkκкᴋ" + "\nlⅼʟǀ" + "\nmмᴍ" + "\nnոпɴη" + "\noοоօᴏഠ०" + "\npρрᴘ" + "\nqԛգ" + "\nrгᴦʀꭇ" + "\nsѕꜱʂ" +
	"\ntтτᴛ" + "\nuυսᴜʋ" + "\nvνѵᴠ" + "\nwԝωᴡшա" + "\nxхχ×" + "\nyуγʏү" + "\nzᴢʐ" +
	"\nAΑАᎪ" + "\nBΒВᏴ" + "\nCСϹᏟ" + "\nDᎠ" + "\nEΕЕᎬ" + "\nFϜ" + "\nGԌᏀ" + "\nHΗНᎻ" + "\nIΙІӀ" + "\nJЈᎫ" + "\nKΚКᏦ" +
	"\nLᏞ" + "\nMΜМᎷ" + "\nNΝ" + "\nOΟОՕ" + "\nPΡРᏢ" + "\nSЅՏᏚ" + "\nTΤТᎢ" + "\nVѴᏙ" + "\nWԜᎳ" + "\nXΧХ" + "\nYΥҮ" + "\nZΖᏃ" +
	"\n-‐‑‒–—―−⁃﹘" + "\n/⁄∕⧸╱" + "\n.․‧۔" + "\n'‘’‛ʹʼ＇" + "\n\"“”„‟″" + "\n:ː˸∶꞉" + "\n;;" + "\n|∣ǀ│" + "\n\\∖⧵⧹" +
	"\n~∼˜〜" + "\n*∗⁎٭" + "\n<‹" + "\n>›" + "\n&ꝸ" + "\n$＄" + "\n `\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\u2800"

// lookalikes maps each character that looks like another one in lookalikeTable to that plain
// character.
var lookalikes = sync.OnceValue(func() map[rune]rune {
	m := make(map[rune]rune, 300)
	for line := range strings.SplitSeq(lookalikeTable, "\n") {
		plain, n := utf8.DecodeRuneInString(line)
		for _, r := range line[n:] {
			if r >= utf8.RuneSelf {
				m[r] = plain
			}
		}
	}
	return m
})

// IsASCII reports whether a text contains only ASCII characters.
func IsASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
