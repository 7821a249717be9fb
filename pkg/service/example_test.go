package service_test

import (
	"fmt"
	"strings"

	"github.com/shieldcli/shield/pkg/service"
)

func ExampleNewUnit() {
	u, err := service.NewUnit("linux", service.UnitSettings{
		Program: "/usr/bin/shield", Home: "/home/me", ConfigDir: "/home/me/.config", Socket: "/run/user/1000/shield/socket", UID: 1000,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range u.Files {
		fmt.Println(f.Path)
	}
	for _, argv := range u.StartCommands {
		fmt.Println(strings.Join(argv, " "))
	}
	// Output:
	// /home/me/.config/systemd/user/shield.socket
	// /home/me/.config/systemd/user/shield.service
	// systemctl --user daemon-reload
	// systemctl --user enable --now shield.socket
}
