package approve

import (
	"fmt"
	"strings"
)

// channels are the ways to reach a person, in the order help lists them.
var channels = []struct {
	name string
	open func(*Options) Channel
}{
	{"tty", newTTY},
	{"web", newWeb},
	{"command", newCommand},
	{"telegram", newTelegram},
	{HostChannel, newHostChannel},
}

// Channels returns the names that [Options.Channels] may hold.
func Channels() []string {
	names := make([]string, len(channels))
	for i, c := range channels {
		names[i] = c.name
	}
	return names
}

// CheckChannel returns an error that says why no person can be asked now on a
// channel, or nil.
func (o Options) CheckChannel(name string) error {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	ch, err := channelNamed(name, &o)
	if err != nil {
		return err
	}
	return ch.Usable()
}

func channelNamed(name string, o *Options) (Channel, error) {
	for _, c := range channels {
		if c.name == name {
			return c.open(o), nil
		}
	}
	return nil, fmt.Errorf("unknown approval channel %.80q; use %s", name, strings.Join(Channels(), ", "))
}
