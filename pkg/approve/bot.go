package approve

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/owner"
)

// A bot speaks to [Telegram's bot API]. Its errors hold no token.
//
// [Telegram's bot API]: https://core.telegram.org/bots/api
type bot struct {
	client *http.Client
	base   string        // URL of the service
	wait   time.Duration // for an answer of it
	token  string
}

const telegramURL = "https://api.telegram.org"

// Bounds of what a bot waits for and reads.
const (
	maxBotAnswer = 1 << 20 // bytes
	maxPresses   = 20      // that are read at a time
	botWait      = 5 * time.Second
	pressWait    = 20 * time.Second // that the service keeps a question for presses open
)

// botTokens are the tokens that the service gives out.
var botTokens = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{30,100}$`) })

// newBotClient returns a client that follows no redirect: the token is in the URL.
// It has no proxy of the environment, which may be the agent's.
func newBotClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    botWait,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 64 << 10,
			MaxConnsPerHost:        16,
			IdleConnTimeout:        time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// readBotToken reads the token of a bot. No error holds it.
func readBotToken(file string) (string, error) {
	if file == "" {
		return "", errors.New("no bot is named; set approval.telegram.token_file to a file with its token")
	}
	token, err := owner.ReadSecret(file, 4<<10)
	if err != nil {
		return "", fmt.Errorf("approval.telegram.token_file: %w", err)
	}
	if !botTokens().MatchString(token) {
		return "", fmt.Errorf("approval.telegram.token_file: %s holds no token of a bot, such as 123456789:AAE…", file)
	}
	return token, nil
}

// A button stands below a message.
type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"` // 64 bytes at most
}

// A press is that of a button, by a user.
type press struct {
	ID   string `json:"id"`
	From struct {
		ID       int    `json:"id"`
		IsBot    bool   `json:"is_bot"`
		Username string `json:"username"`
	} `json:"from"`
	Message struct {
		Chat struct {
			ID int `json:"id"`
		} `json:"chat"`
	} `json:"message"`
	Data string `json:"data"`
}

// An update is a piece of news for a bot.
type update struct {
	ID    int    `json:"update_id"`
	Press *press `json:"callback_query"`
}

// send posts a message with rows of buttons and returns its number.
func (b *bot) send(ctx context.Context, chat int, text string, rows [][]button) (int, error) {
	in := map[string]any{"chat_id": chat, "text": text, "link_preview_options": map[string]bool{"is_disabled": true}}
	if len(rows) > 0 {
		in["reply_markup"] = map[string]any{"inline_keyboard": rows}
	}
	var out struct {
		ID int `json:"message_id"`
	}
	err := b.call(ctx, b.wait, "sendMessage", in, &out)
	return out.ID, err
}

// edit gives a message another text, and takes its buttons away.
func (b *bot) edit(ctx context.Context, chat, message int, text string) error {
	in := map[string]any{"chat_id": chat, "message_id": message, "text": text, "link_preview_options": map[string]bool{"is_disabled": true}}
	return b.call(ctx, b.wait, "editMessageText", in, new(jsontext.Value))
}

// say shows a text to the person who has pressed a button.
func (b *bot) say(ctx context.Context, p *press, text string) error {
	return b.call(ctx, b.wait, "answerCallbackQuery", map[string]any{"callback_query_id": p.ID, "text": text}, new(jsontext.Value))
}

// presses waits for presses from number next on.
func (b *bot) presses(ctx context.Context, next int) (list []update, err error) {
	in := map[string]any{"offset": next, "limit": maxPresses, "timeout": int(pressWait.Seconds()), "allowed_updates": []string{"callback_query"}}
	err = b.call(ctx, pressWait+b.wait, "getUpdates", in, &list)
	return list, err
}

// call calls a method of the service, always by POST.
func (b *bot) call(ctx context.Context, patience time.Duration, method string, in map[string]any, out any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/bot"+b.token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address of the service cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", method, plainly(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBotAnswer+1))
	if err != nil {
		return fmt.Errorf("%s: %w", method, plainly(err))
	}
	var reply struct {
		OK          bool           `json:"ok"`
		Description string         `json:"description"`
		Result      jsontext.Value `json:"result"`
	}
	switch err = json.Unmarshal(data, &reply); {
	case len(data) > maxBotAnswer:
		return fmt.Errorf("%s: the answer is longer than %d bytes", method, maxBotAnswer)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("%s: the service redirects, which is not followed", method)
	case err != nil || !reply.OK || resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: status %d: %s", method, resp.StatusCode, brief(strings.ReplaceAll(reply.Description, b.token, "[token]"), 200))
	}
	if err := json.Unmarshal(reply.Result, out); err != nil {
		return fmt.Errorf("%s: the answer is not what the bot API describes", method)
	}
	return nil
}

// plainly returns an error without the URL, which holds the token.
func plainly(err error) error {
	var wrapped *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &wrapped):
		return wrapped.Err
	}
	return err
}
