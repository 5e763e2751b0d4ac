package scaleway

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// s3 is the protocol of object storage: XML over HTTP, but for the content of
// objects. All its calls may be repeated but those that begin or end a multipart
// upload.
type s3 struct {
	host string // without a bucket's name before it
	name string // of the store, for messages; the estate's own needs none
}

func (s s3) String() string { return orText(s.name, "object storage") }

func (s s3) repeatable(req *http.Request) bool {
	return req.Method != http.MethodPost || req.URL.Query().Has("delete")
}

// passing knows three refusals that are none: Scaleway asks to try a conditional
// write again that met another one (409), and a slow body is answered 400.
func (s s3) passing(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusConflict, http.StatusBadRequest:
		switch errorCode(res) {
		case "ConditionalRequestConflict", "OperationAborted", "RequestTimeout":
			return true
		}
		return false
	case http.StatusNotImplemented:
		return false
	}
	return res.StatusCode >= 500
}

// errorCode is the code of an error in XML; "" without one.
func errorCode(res *http.Response) string {
	answer, _ := readAll(res.Body) // in memory already
	res.Body = io.NopCloser(bytes.NewReader(answer))
	var body struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
	}
	if xml.Unmarshal(answer, &body) != nil {
		return ""
	}
	return body.Code
}

// readable says why an answer cannot be object storage's. The client takes any
// 404 for an object that does not exist and any 200 for a success, also when a
// proxy says so, or one of the real store's own front ends, which answers HTML.
func (s s3) readable(req *http.Request, res *http.Response, answer []byte) error {
	if req.Method == http.MethodHead || res.StatusCode == http.StatusNotModified {
		return nil
	}
	if res.StatusCode >= 300 {
		return refusalIn(res, answer)
	}
	switch {
	case s.aboutContent(req):
		if res.Header.Get("ETag") == "" {
			return errors.New("the answer about an object has no ETag")
		}
		return nil
	case len(answer) == 0 && req.Method == http.MethodGet:
		return errors.New("the answer is empty")
	case len(answer) == 0:
		return nil
	}
	if req.Method == http.MethodGet && req.URL.Query().Has("policy") {
		if _, err := parsePolicy(answer); err != nil {
			return fmt.Errorf("the answer is no policy: %w", err)
		}
		return nil
	}
	root, err := rootOf(answer)
	if err == nil && strings.EqualFold(root, "html") {
		err = errors.New("it is HTML")
	}
	if err != nil {
		return fmt.Errorf("the answer is not whole XML: %w", err)
	}
	return nil
}

// aboutContent says that a call reads or writes an object or a part of one, not
// its settings and not its bucket.
func (s s3) aboutContent(req *http.Request) bool {
	if req.Method != http.MethodGet && req.Method != http.MethodPut {
		return false
	}
	for setting := range req.URL.Query() {
		switch setting {
		case "versionId", "partNumber", "uploadId":
		default:
			return false
		}
	}
	_, key := s.locate(req)
	return key != ""
}

func refusalIn(res *http.Response, answer []byte) error {
	if res.StatusCode >= 500 && len(answer) == 0 {
		return nil // its status says enough
	}
	if len(answer) == 0 {
		return fmt.Errorf("the answer is %d and does not say why", res.StatusCode)
	}
	if errorCode(&http.Response{Body: io.NopCloser(bytes.NewReader(answer))}) == "" {
		return fmt.Errorf("the answer is %d and none of object storage's", res.StatusCode)
	}
	return nil
}

// rootOf is the name of the outermost element of a whole XML document.
func rootOf(text []byte) (string, error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	root := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && root != "" {
			return root, nil
		}
		if err != nil {
			return "", err
		}
		if start, ok := token.(xml.StartElement); ok && root == "" {
			root = start.Name.Local
		}
	}
}
