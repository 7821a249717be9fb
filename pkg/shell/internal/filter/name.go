package filter

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

func Name(base string, flags []string, operands []abstract.Value) (abstract.Value, bool) {
	if len(operands) == 0 || len(flags) > 0 {
		return abstract.Value{}, false
	}
	v := operands[0]
	v.From.Start, v.From.End = 0, 0
	i := strings.LastIndexByte(strings.TrimRight(v.Text, "/"), '/')
	switch base {
	case "basename":
		v.Text = v.Text[i+1:]
		if len(operands) > 1 {
			v.Text = strings.TrimSuffix(v.Text, operands[1].Text)
		}
	case "dirname":
		switch {
		case i < 0:
			v.Text = "."
		case i == 0:
			v.Text = "/"
		default:
			v.Text = v.Text[:i]
		}
	default:
		return Sequence(operands)
	}
	v.Text += "\n"
	return v, true
}

func Sequence(operands []abstract.Value) (abstract.Value, bool) {
	from, to := 1, 0
	var err error
	if to, err = strconv.Atoi(operands[len(operands)-1].Text); err != nil || len(operands) > 2 {
		return abstract.Value{}, false
	}
	if len(operands) == 2 {
		if from, err = strconv.Atoi(operands[0].Text); err != nil {
			return abstract.Value{}, false
		}
	}
	if to-from > abstract.MaxFields/2 {
		return abstract.Value{Text: "*", Show: "$(seq)", IsPattern: true}, true
	}
	var b strings.Builder
	for i := from; i <= to; i++ {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	return abstract.Lit(b.String()), true
}
