# bash completion for shield; generated from the command tree
_shield() {
	local typed=shield i word
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ $word == -* ]] || typed+=" $word"
	done
	local words
	case $typed in
	"shield") words="policy classify evaluate approve run exec hook init explain score rules model status audit doctor --help --version --help" ;;
	"shield policy") words="check test --config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --help" ;;
	"shield policy check") words="--config --policy --model --onnxruntime --state --root --color --help" ;;
	"shield policy test") words="--config --policy --model --onnxruntime --state --root --color --format --help" ;;
	"shield classify") words="--config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --help" ;;
	"shield evaluate") words="--config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --help" ;;
	"shield approve") words="--config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --help" ;;
	"shield run") words="--config --policy --model --onnxruntime --state --root --color --jobs --trace --no-action --max-bytes --until --help" ;;
	"shield exec") words="--config --policy --model --onnxruntime --state --root --color --shell --check --dialect --keep-env --help" ;;
	"shield hook") words="claude-code install uninstall status --help" ;;
	"shield hook claude-code") words="--config --policy --model --onnxruntime --state --root --color --timeout --help" ;;
	"shield hook install") words="--scope --timeout --dry-run --help" ;;
	"shield hook uninstall") words="--scope --help" ;;
	"shield hook status") words="--help" ;;
	"shield init") words="bash zsh fish --help" ;;
	"shield init bash") words="--help" ;;
	"shield init zsh") words="--help" ;;
	"shield init fish") words="--help" ;;
	"shield explain") words="--config --policy --model --onnxruntime --state --root --color --until --width --help" ;;
	"shield score") words="--config --policy --model --onnxruntime --state --color --home --root --until --jobs --format --split --source --ids --misses --max-pass --max-friction --help" ;;
	"shield rules") words="list show test --help" ;;
	"shield rules list") words="--json --help" ;;
	"shield rules show") words="--json --help" ;;
	"shield rules test") words="--help" ;;
	"shield model") words="list pull verify remove --help" ;;
	"shield model list") words="--json --help" ;;
	"shield model pull") words="--name --sha256 --force --help" ;;
	"shield model verify") words="--help" ;;
	"shield model remove") words="--help" ;;
	"shield status") words="--config --policy --model --onnxruntime --state --root --color --json --help" ;;
	"shield audit") words="verify tail query export checkpoint --help" ;;
	"shield audit verify") words="--config --state --file --checkpoint --key --json --help" ;;
	"shield audit tail") words="--config --state --file --lines --follow --help" ;;
	"shield audit query") words="--config --state --file --help" ;;
	"shield audit export") words="--config --state --file --format --help" ;;
	"shield audit checkpoint") words="--config --state --file --key --generate --help" ;;
	"shield doctor") words="--config --policy --model --onnxruntime --state --root --color --repair-state --repair-audit --help" ;;
	*) words= ;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _shield shield
