package shell

import (
	"path"
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// spaceSeparatedHomeSettingsPaths are the files of a home folder from which programs read settings that can contain code or names of
// programs.
const spaceSeparatedHomeSettingsPaths = `
	.gitconfig .config/git/config .npmrc .yarnrc .bashrc .bash_profile .profile .zshrc .zshenv .config/fish/config.fish .vimrc .vim/vimrc
	.config/nvim/init.vim .config/nvim/init.lua .emacs .emacs.d/init.el .config/emacs/init.el .ssh/config .pip/pip.conf .config/pip/pip.conf
	.cargo/config.toml .cargo/config .gdbinit .lldbinit .psqlrc .tmux.conf .config/tmux/tmux.conf .docker/config.json .kube/config .aws/config
	.curlrc .wgetrc .gemrc .irbrc .pryrc .Rprofile .gradle/init.gradle .m2/settings.xml .config/composer/config.json .hgrc .mailcap .inputrc .screenrc
`

// recordSettingsLoadFromFolder checks a folder that a variable such as HOME or XDG_CONFIG_HOME sets as the
// source of settings. Unless the folder is the user's home or its .config, the settings there may name programs
// to run.
func (s *analysisState) recordSettingsLoadFromFolder(variableName string, v abstract.Value) {
	folder, pattern := s.workingFolderContext().CanonicalPath(v.Text, false)
	if pattern || folder == "" || s.remoteOrContainerDepth > 0 || s.initialPathContext.Home != "" && (folder == s.initialPathContext.Home || folder == s.initialPathContext.Home+"/.config") {
		return
	}
	for file := range strings.FieldsSeq(spaceSeparatedHomeSettingsPaths) {
		if variableName != "HOME" {
			if file, _ = strings.CutPrefix(file, ".config/"); file[0] == '.' {
				continue
			}
		}
		p := path.Join(folder, file)
		lies := len(s.writtenFileContents(p, false)) > 0
		if !lies && s.initialPathContext.ReadScript != nil {
			data, err := s.initialPathContext.ReadScript(p)
			lies = err == nil && len(data) > 0
		}
		if lies {
			s.recordCodeLoadFromVariablePath(variableName, v)
			return
		}
	}
}
