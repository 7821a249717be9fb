package cmd

// manPageSections are additional sections of some man pages, by name; their text is Markdown.
var manPageSections = map[string][]struct{ title, text string }{
	"shield-approve": {{"THE APPROVAL PROGRAM", approvalProgramManual}},
}

const approvalProgramManual = `The channel **command** of approval.channels runs the program that approval.command names, once for each question, in the folder of the settings file. It gets one JSON object on a line on standard input, without the secrets of the action:

**id**
: 128 random bits in hex; names this question.

**summary**
: One sentence: what would happen, and why it is asked.

**type**
: The type of the action, such as execute_command.

**payload**
: A list of objects with name and value, both text, one for each field of the action; without credentials; what matters most comes first, such as command or path, what is long last.

**cut**
: true if not all of the action is in payload. Then it can only be denied on the page and in chats; a program should deny it, too.

**cwd**, **session**, **asker**
: The folder, the session of the agent, the program that asks and what started it. Each is left out where it is unknown.

**effects**
: A list of texts: what the action would do.

**tiers**
: A list of texts: what each tier said so far, and how sure it was.

**remember**
: true if the answer may be remembered for some minutes.

**kind**
: What an answer for the session would cover: programs, objects and options. Left out where each action needs an answer.

**seconds**
: The time left for an answer. After that the program and everything it started are ended, and the action is denied unless another channel answers.

The program writes one JSON object of at most 64 KiB to standard output, and ends with status 0:

**decision**
: "approve" or "deny". The other keys may be left out.

**id**
: The id of the question; an answer with another one does not count.

**reason**
: Text that reaches the agent and the audit log.

**by**
: Who answered, for the audit log.

**minutes**
: A whole number: how long to approve this exact action, 60 at most. It counts only where remember is true.

**scope**
: "once", or "session" to approve all actions of this kind in this session. It counts only where kind is given.

Another key, a value of another kind, a second object, or another status is not an answer. A program that asks on the desktop:

    #!/bin/sh
    q=$(jq -r '.summary')
    if zenity --question --default-cancel --no-markup --text="$q"; then d=approve; else d=deny; fi
    printf '{"decision":"%s","by":"%s"}\n' "$d" "$USER"`
