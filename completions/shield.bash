# bash completion for shield; generated from the command tree
_shield() {
	local typed_words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
	local typed=shield skip= word choices= action=
	for word in "${typed_words[@]}"; do
		if [[ -n $skip ]]; then
			skip=
		elif [[ " --config --policy --model --onnxruntime --state --root --color --jobs --max-bytes --format --until --dialect --keep-env --timeout --scope --width --home --split --source --ids --misses --max-pass --max-friction --category --name --sha256 --file --checkpoint --key --lines " == *" $word "* ]]; then
			skip=$word
		elif [[ $word != -* ]]; then
			typed+=" $word"
		fi
	done
	case "$typed $skip" in
	"shield ") choices="policy classify evaluate approve run exec hook init explain score rules model approvals status audit doctor completion --help --version --help" ;;
	"shield policy ") choices="check test --config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --help" ;;
	"shield policy --config") choices="" action=file ;;
	"shield policy --policy") choices="default offline strict permissive" action=file ;;
	"shield policy --model") choices="none" action=directory ;;
	"shield policy --onnxruntime") choices="" action=file ;;
	"shield policy --state") choices="" action=directory ;;
	"shield policy --root") choices="" action=directory ;;
	"shield policy --color") choices="auto always never" action=none ;;
	"shield policy --jobs") choices="" action=none ;;
	"shield policy --max-bytes") choices="" action=none ;;
	"shield policy check ") choices="--config --policy --model --onnxruntime --state --root --color --help" ;;
	"shield policy check --config") choices="" action=file ;;
	"shield policy check --policy") choices="default offline strict permissive" action=file ;;
	"shield policy check --model") choices="none" action=directory ;;
	"shield policy check --onnxruntime") choices="" action=file ;;
	"shield policy check --state") choices="" action=directory ;;
	"shield policy check --root") choices="" action=directory ;;
	"shield policy check --color") choices="auto always never" action=none ;;
	"shield policy test ") choices="--config --policy --model --onnxruntime --state --root --color --format --help" ;;
	"shield policy test --config") choices="" action=file ;;
	"shield policy test --policy") choices="default offline strict permissive" action=file ;;
	"shield policy test --model") choices="none" action=directory ;;
	"shield policy test --onnxruntime") choices="" action=file ;;
	"shield policy test --state") choices="" action=directory ;;
	"shield policy test --root") choices="" action=directory ;;
	"shield policy test --color") choices="auto always never" action=none ;;
	"shield policy test --format") choices="text tap junit json" action=none ;;
	"shield classify ") choices="--config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --help" ;;
	"shield classify --config") choices="" action=file ;;
	"shield classify --policy") choices="default offline strict permissive" action=file ;;
	"shield classify --model") choices="none" action=directory ;;
	"shield classify --onnxruntime") choices="" action=file ;;
	"shield classify --state") choices="" action=directory ;;
	"shield classify --root") choices="" action=directory ;;
	"shield classify --color") choices="auto always never" action=none ;;
	"shield classify --jobs") choices="" action=none ;;
	"shield classify --max-bytes") choices="" action=none ;;
	"shield evaluate ") choices="--config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --help" ;;
	"shield evaluate --config") choices="" action=file ;;
	"shield evaluate --policy") choices="default offline strict permissive" action=file ;;
	"shield evaluate --model") choices="none" action=directory ;;
	"shield evaluate --onnxruntime") choices="" action=file ;;
	"shield evaluate --state") choices="" action=directory ;;
	"shield evaluate --root") choices="" action=directory ;;
	"shield evaluate --color") choices="auto always never" action=none ;;
	"shield evaluate --jobs") choices="" action=none ;;
	"shield evaluate --max-bytes") choices="" action=none ;;
	"shield approve ") choices="--config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --help" ;;
	"shield approve --config") choices="" action=file ;;
	"shield approve --policy") choices="default offline strict permissive" action=file ;;
	"shield approve --model") choices="none" action=directory ;;
	"shield approve --onnxruntime") choices="" action=file ;;
	"shield approve --state") choices="" action=directory ;;
	"shield approve --root") choices="" action=directory ;;
	"shield approve --color") choices="auto always never" action=none ;;
	"shield approve --jobs") choices="" action=none ;;
	"shield approve --max-bytes") choices="" action=none ;;
	"shield run ") choices="--config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --until --help" ;;
	"shield run --config") choices="" action=file ;;
	"shield run --policy") choices="default offline strict permissive" action=file ;;
	"shield run --model") choices="none" action=directory ;;
	"shield run --onnxruntime") choices="" action=file ;;
	"shield run --state") choices="" action=directory ;;
	"shield run --root") choices="" action=directory ;;
	"shield run --color") choices="auto always never" action=none ;;
	"shield run --jobs") choices="" action=none ;;
	"shield run --max-bytes") choices="" action=none ;;
	"shield run --until") choices="policy classify evaluate approve" action=none ;;
	"shield exec ") choices="--config --policy --model --onnxruntime --state --root --color --shell --check --dialect --keep-env --help" ;;
	"shield exec --config") choices="" action=file ;;
	"shield exec --policy") choices="default offline strict permissive" action=file ;;
	"shield exec --model") choices="none" action=directory ;;
	"shield exec --onnxruntime") choices="" action=file ;;
	"shield exec --state") choices="" action=directory ;;
	"shield exec --root") choices="" action=directory ;;
	"shield exec --color") choices="auto always never" action=none ;;
	"shield exec --dialect") choices="" action=none ;;
	"shield exec --keep-env") choices="" action=none ;;
	"shield hook ") choices="claude-code install uninstall status list --help" ;;
	"shield hook claude-code ") choices="--config --policy --model --onnxruntime --state --root --color --timeout --help" ;;
	"shield hook claude-code --config") choices="" action=file ;;
	"shield hook claude-code --policy") choices="default offline strict permissive" action=file ;;
	"shield hook claude-code --model") choices="none" action=directory ;;
	"shield hook claude-code --onnxruntime") choices="" action=file ;;
	"shield hook claude-code --state") choices="" action=directory ;;
	"shield hook claude-code --root") choices="" action=directory ;;
	"shield hook claude-code --color") choices="auto always never" action=none ;;
	"shield hook claude-code --timeout") choices="" action=none ;;
	"shield hook install ") choices="--scope --timeout --dry-run --all --help" ;;
	"shield hook install --scope") choices="user project managed" action=none ;;
	"shield hook install --timeout") choices="" action=none ;;
	"shield hook uninstall ") choices="--scope --all --help" ;;
	"shield hook uninstall --scope") choices="user project managed" action=none ;;
	"shield hook status ") choices="--all --help" ;;
	"shield hook list ") choices="--help" ;;
	"shield init ") choices="bash zsh fish --help" ;;
	"shield init bash ") choices="--help" ;;
	"shield init zsh ") choices="--help" ;;
	"shield init fish ") choices="--help" ;;
	"shield explain ") choices="--config --policy --model --onnxruntime --state --root --color --until --width --help" ;;
	"shield explain --config") choices="" action=file ;;
	"shield explain --policy") choices="default offline strict permissive" action=file ;;
	"shield explain --model") choices="none" action=directory ;;
	"shield explain --onnxruntime") choices="" action=file ;;
	"shield explain --state") choices="" action=directory ;;
	"shield explain --root") choices="" action=directory ;;
	"shield explain --color") choices="auto always never" action=none ;;
	"shield explain --until") choices="policy classify evaluate approve" action=none ;;
	"shield explain --width") choices="" action=none ;;
	"shield score ") choices="--config --policy --model --onnxruntime --state --color --home --root --until --jobs --format --split --source --ids --misses --max-pass --max-friction --help" ;;
	"shield score --config") choices="" action=file ;;
	"shield score --policy") choices="default offline strict permissive" action=file ;;
	"shield score --model") choices="none" action=directory ;;
	"shield score --onnxruntime") choices="" action=file ;;
	"shield score --state") choices="" action=directory ;;
	"shield score --color") choices="auto always never" action=none ;;
	"shield score --home") choices="" action=directory ;;
	"shield score --root") choices="" action=directory ;;
	"shield score --until") choices="policy classify evaluate approve" action=none ;;
	"shield score --jobs") choices="" action=none ;;
	"shield score --format") choices="table json markdown junit html" action=none ;;
	"shield score --split") choices="" action=none ;;
	"shield score --source") choices="" action=none ;;
	"shield score --ids") choices="" action=file ;;
	"shield score --misses") choices="" action=none ;;
	"shield score --max-pass") choices="" action=none ;;
	"shield score --max-friction") choices="" action=none ;;
	"shield rules ") choices="list show test --help" ;;
	"shield rules list ") choices="--json --category --help" ;;
	"shield rules list --category") choices="data_exfiltration encoding_evasion email_safety generation_safety concealment social_engineering sensitive_data prompt_injection evasion exfiltration credential_access supply_chain defense_evasion phishing impact path_traversal self_protection privilege_escalation persistence lateral_movement discovery obfuscation remote_code destruction command_and_control exploitation malicious_execution reverse_shell permission_weakening resource_hijacking collection web_exploit" action=none ;;
	"shield rules show ") choices="--json --help" ;;
	"shield rules test ") choices="--help" ;;
	"shield model ") choices="list pull verify remove --help" ;;
	"shield model list ") choices="--json --help" ;;
	"shield model pull ") choices="--name --sha256 --force --help" ;;
	"shield model pull --name") choices="" action=none ;;
	"shield model pull --sha256") choices="" action=none ;;
	"shield model verify ") choices="--help" ;;
	"shield model remove ") choices="--help" ;;
	"shield approvals ") choices="list revoke --config --state --json --help" ;;
	"shield approvals --config") choices="" action=file ;;
	"shield approvals --state") choices="" action=directory ;;
	"shield approvals list ") choices="--config --state --json --help" ;;
	"shield approvals list --config") choices="" action=file ;;
	"shield approvals list --state") choices="" action=directory ;;
	"shield approvals revoke ") choices="--config --state --json --all --help" ;;
	"shield approvals revoke --config") choices="" action=file ;;
	"shield approvals revoke --state") choices="" action=directory ;;
	"shield status ") choices="--config --policy --model --onnxruntime --state --root --color --json --help" ;;
	"shield status --config") choices="" action=file ;;
	"shield status --policy") choices="default offline strict permissive" action=file ;;
	"shield status --model") choices="none" action=directory ;;
	"shield status --onnxruntime") choices="" action=file ;;
	"shield status --state") choices="" action=directory ;;
	"shield status --root") choices="" action=directory ;;
	"shield status --color") choices="auto always never" action=none ;;
	"shield audit ") choices="verify tail query export checkpoint --help" ;;
	"shield audit verify ") choices="--config --state --file --checkpoint --key --json --help" ;;
	"shield audit verify --config") choices="" action=file ;;
	"shield audit verify --state") choices="" action=directory ;;
	"shield audit verify --file") choices="" action=file ;;
	"shield audit verify --checkpoint") choices="" action=file ;;
	"shield audit verify --key") choices="" action=file ;;
	"shield audit tail ") choices="--config --state --file --lines --follow --help" ;;
	"shield audit tail --config") choices="" action=file ;;
	"shield audit tail --state") choices="" action=directory ;;
	"shield audit tail --file") choices="" action=file ;;
	"shield audit tail --lines") choices="" action=none ;;
	"shield audit query ") choices="--config --state --file --help" ;;
	"shield audit query --config") choices="" action=file ;;
	"shield audit query --state") choices="" action=directory ;;
	"shield audit query --file") choices="" action=file ;;
	"shield audit export ") choices="--config --state --file --format --help" ;;
	"shield audit export --config") choices="" action=file ;;
	"shield audit export --state") choices="" action=directory ;;
	"shield audit export --file") choices="" action=file ;;
	"shield audit export --format") choices="jsonl csv" action=none ;;
	"shield audit checkpoint ") choices="--config --state --file --key --generate --help" ;;
	"shield audit checkpoint --config") choices="" action=file ;;
	"shield audit checkpoint --state") choices="" action=directory ;;
	"shield audit checkpoint --file") choices="" action=file ;;
	"shield audit checkpoint --key") choices="" action=file ;;
	"shield doctor ") choices="--config --policy --model --onnxruntime --state --root --color --repair-state --repair-audit --help" ;;
	"shield doctor --config") choices="" action=file ;;
	"shield doctor --policy") choices="default offline strict permissive" action=file ;;
	"shield doctor --model") choices="none" action=directory ;;
	"shield doctor --onnxruntime") choices="" action=file ;;
	"shield doctor --state") choices="" action=directory ;;
	"shield doctor --root") choices="" action=directory ;;
	"shield doctor --color") choices="auto always never" action=none ;;
	"shield completion ") choices="bash zsh fish --help" ;;
	"shield completion bash ") choices="--help" ;;
	"shield completion zsh ") choices="--help" ;;
	"shield completion fish ") choices="--help" ;;
	esac
	local current=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=($(compgen -W "$choices" -- "$current"))
	compopt +o default
	case $action in
	file) COMPREPLY+=($(compgen -f -- "$current")); compopt -o filenames ;;
	directory) COMPREPLY+=($(compgen -d -- "$current")); compopt -o filenames ;;
	'') compopt -o default ;;
	esac
}
complete -o default -F _shield shield
