package classify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/shieldcli/shield/internal/owner"
)

// dialSocket connects to a socket that only this user or root can have created, since another user's
// classifier could call every attack safe. It checks the path first and then the listening process, because
// the path may change in between.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	if !owner.SupportsFileOwners {
		return nil, errors.New("cannot check the owner of a socket on this system; use http://127.0.0.1:PORT")
	}
	if err := checkSocketOwnerAndMode(path); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := checkListenerUID(conn.(*net.UnixConn), os.Geteuid()); err != nil {
		conn.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return conn, nil
}

func checkSocketOwnerAndMode(path string) error {
	if err := owner.CheckFolderOwnerAndMode(filepath.Dir(path)); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is not a socket", path)
	}
	if err := owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherAccessBits); err != nil {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	return nil
}
