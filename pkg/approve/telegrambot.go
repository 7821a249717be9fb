package approve

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A telegramBot is a client of [Telegram's bot API].
//
// [Telegram's bot API]: https://core.telegram.org/bots/api
type telegramBot struct{ chatBot }

const telegramURL = "https://api.telegram.org"

// Limits of reading button presses.
const (
	maxButtonPressesPerRead     = 20               // presses read at a time
	buttonPressLongPollDuration = 20 * time.Second // how long the service holds a request for presses open
)

// telegramTokenFormat is the form of a token of the service.
var telegramTokenFormat = botTokenFormat{settingName: "approval.telegram.token_file", pattern: `^[0-9]{1,20}:[A-Za-z0-9_-]{30,100}$`, example: "123456789:AAE…"}

// A button is below a message.
type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"` // at most 64 bytes
}

// A buttonPress is a press of a button by a user.
type buttonPress struct {
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

// A botUpdate is an event for a bot.
type botUpdate struct {
	ID    int          `json:"update_id"`
	Press *buttonPress `json:"callback_query"`
}

// post posts a message with rows of buttons and returns its number.
func (b *telegramBot) post(ctx context.Context, chat int, text string, rows [][]button) (int, error) {
	in := map[string]any{"chat_id": chat, "text": text, "link_preview_options": map[string]bool{"is_disabled": true}}
	if len(rows) > 0 {
		in["reply_markup"] = map[string]any{"inline_keyboard": rows}
	}
	var out struct {
		ID int `json:"message_id"`
	}
	err := b.call(ctx, b.requestTimeout, "sendMessage", in, &out)
	return out.ID, err
}

// edit replaces the text of a message, and removes its buttons.
func (b *telegramBot) edit(ctx context.Context, chat, message int, text string) error {
	in := map[string]any{"chat_id": chat, "message_id": message, "text": text, "link_preview_options": map[string]bool{"is_disabled": true}}
	return b.call(ctx, b.requestTimeout, "editMessageText", in, new(jsontext.Value))
}

// showNotice shows a text to the person who pressed a button.
func (b *telegramBot) showNotice(ctx context.Context, p *buttonPress, text string) error {
	return b.call(ctx, b.requestTimeout, "answerCallbackQuery", map[string]any{"callback_query_id": p.ID, "text": text}, new(jsontext.Value))
}

// awaitButtonPresses waits for button presses, and returns those whose update ID is firstUpdateID
// or higher.
func (b *telegramBot) awaitButtonPresses(ctx context.Context, firstUpdateID int) (list []botUpdate, err error) {
	in := map[string]any{"offset": firstUpdateID, "limit": maxButtonPressesPerRead, "timeout": int(buttonPressLongPollDuration.Seconds()), "allowed_updates": []string{"callback_query"}}
	err = b.call(ctx, buttonPressLongPollDuration+b.requestTimeout, "getUpdates", in, &list)
	return list, err
}

// call calls a method of the service, always by POST.
func (b *telegramBot) call(ctx context.Context, timeout time.Duration, method string, in map[string]any, out any) error {
	status, data, err := b.send(ctx, timeout, chatServiceCall{operationDescription: method, method: http.MethodPost, path: "/bot" + b.token + "/" + method, jsonBody: in})
	if err != nil {
		return err
	}
	var reply struct {
		OK          bool           `json:"ok"`
		Description string         `json:"description"`
		Result      jsontext.Value `json:"result"`
	}
	if err := json.Unmarshal(data, &reply); err != nil || !reply.OK || status != http.StatusOK {
		return fmt.Errorf("%s: status %d: %s", method, status, b.withoutToken(reply.Description))
	}
	if err := json.Unmarshal(reply.Result, out); err != nil {
		return fmt.Errorf("%s: the service's answer does not match the bot API; check the channel's address in the settings", method)
	}
	return nil
}
