package vault

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// OpenGiven opens a file that a person names to hand a secret in: a regular
// file, or the pipe that a shell puts there for <(pass show staging). A pipe
// that nobody writes to is empty at once instead of being waited for, and a
// device is refused.
func OpenGiven(path string) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0 {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("it is neither a file nor a pipe")}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func readGiven(path string, limit int64) ([]byte, error) {
	f, err := OpenGiven(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = errors.New("it is far larger than such a file is")
	}
	return text, err
}
