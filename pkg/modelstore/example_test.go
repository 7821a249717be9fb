package modelstore_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/shieldcli/shield/pkg/modelstore"
)

func ExampleStore_Install() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s := modelstore.Open(dir, nil, time.Now)
	_, err = s.Install(context.Background(), "https://models.example/small.tar.gz", modelstore.InstallOptions{Name: "small"})
	fmt.Println(err) // what is downloaded has to be named by its hash
	names, err := s.Names()
	fmt.Println(names, err)
	// Output:
	// a URL needs --sha256; add the digest that the publisher states
	// [] <nil>
}
