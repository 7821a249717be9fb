package config_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/config"
)

func ExampleApplyChangesToSettingsText() {
	text, err := config.ApplyChangesToSettingsText(config.Sources{Home: "/home/me", CommandLinePathsBaseDir: "/home/me"}, "/home/me/.config/shield/shield.yaml",
		[]byte("# mine\ndaily_budget: 100 # a day\n"), config.SettingChange{Name: "daily_budget", Value: "200"}, config.SettingChange{Name: "approval.channels", Value: "[web]"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(text))
	// Output:
	// # mine
	// daily_budget: 200 # a day
	// approval: {channels: [web]}
}
