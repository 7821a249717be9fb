package shell

import (
	"testing"
)

// TestSettingCode holds which settings that a command writes, adds or edits make
// programs run what only the file says.
func TestSettingCode(t *testing.T) {
	t.Parallel()
	codeRunningSettingsFiles() // panics where names of files of pkg/knowledge/settings.yaml are no globs
	for text, want := range map[string]bool{
		`printf '[build]\nrustc-wrapper = "./x.sh"\n' > .cargo/config.toml`:    true,
		`printf '[build]\nrustc-wrapper = "sccache"\n' > .cargo/config.toml`:   false,
		`printf '[build]\nrustc-wrapper = "./x.sh"\n' > notes.toml`:            false,
		`printf '[target.a]\nrunner = "/tmp/x"\n' >> .cargo/config.toml`:       true,
		`printf '[target.a]\nlinker = "clang"\n' >> ~/.cargo/config.toml`:      false,
		"cat > .cargo/config.toml <<E\n[env]\nLD_PRELOAD = \"/tmp/x.so\"\nE":   true,
		`echo script-shell=./x.sh >> .npmrc`:                                   true,
		`echo script-shell=bash >> .npmrc`:                                     false,
		`echo 'node-options=--require ./x.js' | tee -a .npmrc`:                 true,
		`echo save-exact=true >> .npmrc`:                                       false,
		`sed -i 's|^script-shell=.*|script-shell=/tmp/x|' .npmrc`:              true,
		`sed -i 's|^save-exact=.*|save-exact=true|' .npmrc`:                    false,
		`echo 'yarnPath: /tmp/x.cjs' > .yarnrc.yml`:                            true,
		`echo 'yarnPath: .yarn/releases/yarn-4.1.0.cjs' > .yarnrc.yml`:         false,
		`echo 'org.gradle.jvmargs=-javaagent:/tmp/x.jar' >> gradle.properties`: true,
		`echo 'org.gradle.jvmargs=-Xmx4g' >> gradle.properties`:                false,
	} {
		if got := loads(Analyze(text, here())); got != want {
			t.Errorf("%s: runs what a setting names: %t", text, got)
		}
	}
}
