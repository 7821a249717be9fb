package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is the user ID of shield in a container.
const nobody = 65534

// image creates a target's container image, with Debian packages and shield, as an archive in OCI
// layout.
func (r *Release) image(ctx context.Context, b *Build) error {
	if !b.Target.Image {
		return nil
	}
	work, err := os.MkdirTemp("", "shield-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if b.debian, err = download(ctx, work, b.Arch, r.Facts.Image); err != nil {
		return err
	}
	base, err := r.base(ctx, b.debian)
	if err != nil {
		return err
	}
	files, err := r.installed(b, r.Facts.Packages["deb"].Zsh)
	if err != nil {
		return err
	}
	own, err := files.tar(r.Source.Time)
	if err != nil {
		return err
	}
	image, err := r.imageOf(b, base, own)
	if err != nil {
		return err
	}
	data, err := r.ociArchive(image, filepath.Join(work, "layout"))
	return r.write(r.top(b.Target.Name)+".oci.tar", data, err)
}

// base returns the layer with the Debian packages, as tar.
func (r *Release) base(ctx context.Context, packages []Debian) ([]byte, error) {
	var out bytes.Buffer
	l := &layer{w: tar.NewWriter(&out), release: r, seen: map[string]bool{}}
	for _, p := range packages {
		content, err := run(ctx, ".", nil, "dpkg-deb", "--fsys-tarfile", p.path)
		if err != nil {
			return nil, err
		}
		if err := l.unpack(strings.NewReader(content)); err != nil {
			return nil, err
		}
		// vulnerability scanners look here in an image without a package manager
		if err := l.file("var/lib/dpkg/status.d/"+p.Name, []byte(p.control)); err != nil {
			return nil, err
		}
	}
	err := errors.Join(
		l.file("etc/ssl/certs/ca-certificates.crt", l.certificates.Bytes()),
		l.file("etc/passwd", []byte("root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/home/nobody:/usr/sbin/nologin\n")),
		l.file("etc/group", []byte("root:x:0:\nnogroup:x:65534:\n")),
		l.add(&tar.Header{Typeflag: tar.TypeDir, Name: "home/nobody/", Mode: 0o700, Uid: nobody, Gid: nobody}, nil),
		l.w.Close(),
	)
	return out.Bytes(), err
}

// A layer is a tar archive of files from several packages.
type layer struct {
	w            *tar.Writer
	release      *Release
	seen         map[string]bool // folders that were added
	certificates bytes.Buffer
}

// left are folders of Debian packages that are omitted, except the copyright files in them.
var left = []string{"usr/share/doc/", "usr/share/lintian/", "usr/share/man/", "usr/share/locale/", "usr/share/bug/", "etc/ssl/certs/"}

// unpack adds the content of a package. The certificates become one file, as ca-certificates does at
// installation.
func (l *layer) unpack(content io.Reader) error {
	for t := tar.NewReader(content); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		h.Name = strings.TrimPrefix(h.Name, "./")
		kept := h.Name != ""
		for _, folder := range left {
			kept = kept && (!strings.HasPrefix(h.Name, folder) || filepath.Base(h.Name) == "copyright")
		}
		if h.Typeflag == tar.TypeReg && strings.HasPrefix(h.Name, "usr/share/ca-certificates/") {
			_, err := io.Copy(&l.certificates, t)
			if err != nil {
				return err
			}
			continue
		}
		if kept {
			if err := l.add(h, t); err != nil {
				return err
			}
		}
	}
}

func (l *layer) file(name string, data []byte) error {
	return l.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))}, bytes.NewReader(data))
}

// add adds an entry with the release's time and no owner.
func (l *layer) add(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		if l.seen[h.Name] {
			return nil
		}
		l.seen[h.Name] = true
	}
	clean := &tar.Header{Typeflag: h.Typeflag, Name: h.Name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode, Uid: h.Uid, Gid: h.Gid, ModTime: l.release.Source.Time, Format: tar.FormatPAX}
	if err := l.w.WriteHeader(clean); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(l.w, content)
	return err
}

// imageOf returns an image with layers.
func (r *Release) imageOf(b *Build, layers ...[]byte) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: b.OS, Architecture: b.Arch, Created: v1.Time{Time: r.Source.Time}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{"/usr/bin/" + r.Name}, User: "65534:65534", WorkingDir: "/home/nobody",
			Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/nobody"},
			Labels: map[string]string{
				"org.opencontainers.image.title": r.Name, "org.opencontainers.image.description": r.Summary, "org.opencontainers.image.version": r.Number(),
				"org.opencontainers.image.revision": r.Source.Commit, "org.opencontainers.image.licenses": r.License, "org.opencontainers.image.url": r.Homepage,
			},
		},
	})
	for _, data := range layers {
		if err != nil {
			return nil, err
		}
		var l v1.Layer
		l, err = tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, tarball.WithMediaType(types.OCILayer))
		if err == nil {
			image, err = mutate.Append(image, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: r.Source.Time}, CreatedBy: "release"}})
		}
	}
	return image, err
}

// ociArchive returns an image as one archive, for podman load, docker load and skopeo.
func (r *Release) ociArchive(image v1.Image, dir string) ([]byte, error) {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.Number()})
	if err := path.AppendImage(image, name); err != nil {
		return nil, err
	}
	files, err := walk(dir)
	if err != nil {
		return nil, err
	}
	return files.tar(r.Source.Time)
}
