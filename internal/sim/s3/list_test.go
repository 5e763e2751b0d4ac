package s3_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
)

type listing struct {
	Contents       []struct{ Key string }
	CommonPrefixes []struct{ Prefix string }
	IsTruncated    bool
	KeyCount       int
	NextMarker     string
	Next           string `xml:"NextContinuationToken"`
}

func (l listing) lines() []string {
	out := []string{}
	for _, c := range l.Contents {
		out = append(out, c.Key)
	}
	for _, p := range l.CommonPrefixes {
		out = append(out, p.Prefix)
	}
	return out
}

func TestListings(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	for _, k := range []string{"a", "b/1", "b/2", "b/c/3", "d", "e%20f", "g%2Bh"} {
		s.put("/estate/"+k, "x")
	}
	for _, c := range []struct {
		query string
		want  []string
		more  bool
	}{
		{"", []string{"a", "b/1", "b/2", "b/c/3", "d", "e f", "g+h"}, false},
		{"prefix=b/", []string{"b/1", "b/2", "b/c/3"}, false},
		{"delimiter=/", []string{"a", "d", "e f", "g+h", "b/"}, false},
		{"delimiter=/&prefix=b/", []string{"b/1", "b/2", "b/c/"}, false},
		{"max-keys=2", []string{"a", "b/1"}, true},
		{"max-keys=2&delimiter=/", []string{"a", "b/"}, true},
		{"max-keys=0", []string{}, false},
		{"prefix=zzz", []string{}, false},
		{"encoding-type=url&prefix=e", []string{"e+f"}, false},
		{"encoding-type=url&prefix=g", []string{"g%2Bh"}, false},
	} {
		for _, v := range []string{"", "list-type=2&"} {
			l := parse[listing](t, s.want(200, "", s.do("GET", "/estate?"+v+c.query, "")))
			if got := l.lines(); !slices.Equal(got, c.want) || l.IsTruncated != c.more {
				t.Errorf("%s%s: %v, more: %v, want %v", v, c.query, got, l.IsTruncated, c.want)
			}
			if v != "" && l.KeyCount != len(c.want) {
				t.Errorf("%s%s: KeyCount %d", v, c.query, l.KeyCount)
			}
		}
	}
	if got := parse[listing](t, s.do("GET", "/estate?marker=b/2", "")).lines(); !slices.Equal(got, []string{"b/c/3", "d", "e f", "g+h"}) {
		t.Errorf("%v", got)
	}
	if got := parse[listing](t, s.do("GET", "/estate?list-type=2&start-after=d", "")).lines(); !slices.Equal(got, []string{"e f", "g+h"}) {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{"max-keys=x", "max-keys=-1", "encoding-type=base64", "list-type=3", "list-type=2&continuation-token=%25", "list-type=2&continuation-token="} {
		s.want(400, "InvalidArgument", s.do("GET", "/estate?"+bad, ""))
	}
}

// TestPages goes through a listing page by page, with and without prefixes.
func TestPages(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	for i := range 7 {
		s.put(fmt.Sprintf("/estate/dir%d/key", i), "x")
		s.put(fmt.Sprintf("/estate/dir%d/more", i), "x")
	}
	for _, c := range []struct {
		delimiter string
		want      int
	}{{"", 14}, {"/", 7}} {
		v1, v2, marker, token := []string{}, []string{}, "", ""
		for page := 0; page == 0 || marker != ""; page++ {
			l := parse[listing](t, s.want(200, "", s.do("GET", "/estate?max-keys=3&delimiter="+c.delimiter+"&marker="+escape(marker), "")))
			v1 = append(v1, l.lines()...)
			if marker = l.NextMarker; marker == "" && l.IsTruncated {
				marker = v1[len(v1)-1]
			}
		}
		for page := 0; page == 0 || token != ""; page++ {
			query := "/estate?list-type=2&max-keys=3&delimiter=" + c.delimiter
			if token != "" {
				query += "&continuation-token=" + escape(token)
			}
			l := parse[listing](t, s.want(200, "", s.do("GET", query, "")))
			v2 = append(v2, l.lines()...)
			token = l.Next
		}
		if len(v1) != c.want || !slices.Equal(v1, v2) {
			t.Errorf("delimiter %q: %v and %v", c.delimiter, v1, v2)
		}
	}
}

func TestPagesOfVersions(t *testing.T) {
	s := start(t)
	s.versionedBucket("estate")
	for i := range 5 {
		for _, k := range []string{"a", "b", "dir/c"} {
			s.put("/estate/"+k, fmt.Sprint(i))
		}
	}
	type versions struct {
		Version        []struct{ Key, VersionId string }
		IsTruncated    bool
		NextKeyMarker  string
		Next           string `xml:"NextVersionIdMarker"`
		CommonPrefixes []struct{ Prefix string }
	}
	seen, key, id := map[string]bool{}, "", ""
	for page := 0; page == 0 || key != ""; page++ {
		if page > 20 {
			t.Fatal("the listing does not end")
		}
		l := parse[versions](t, s.want(200, "", s.do("GET", "/estate?versions&max-keys=4&key-marker="+escape(key)+"&version-id-marker="+id, "")))
		for _, v := range l.Version {
			if seen[v.Key+v.VersionId] {
				t.Errorf("%s %s comes twice", v.Key, v.VersionId)
			}
			seen[v.Key+v.VersionId] = true
		}
		key, id = l.NextKeyMarker, l.Next
	}
	if len(seen) != 15 {
		t.Errorf("%d of 15 versions", len(seen))
	}
	l := parse[versions](t, s.do("GET", "/estate?versions&delimiter=/", ""))
	if len(l.Version) != 10 || len(l.CommonPrefixes) != 1 {
		t.Errorf("%+v", l)
	}
	s.want(400, "InvalidArgument", s.do("GET", "/estate?versions&version-id-marker="+id+"1", ""))
}

func TestPagesOfUploads(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	for i := range 3 {
		for range 2 {
			s.want(200, "", s.do("POST", fmt.Sprintf("/estate/key%d?uploads", i), ""))
		}
	}
	n := 0
	for u := range s.client().ListIncompleteUploads(t.Context(), "estate", "", true) {
		if u.Err != nil {
			t.Fatal(u.Err)
		}
		n++
	}
	type uploads struct {
		Upload        []struct{ Key, UploadId string }
		NextKeyMarker string
		Next          string `xml:"NextUploadIdMarker"`
	}
	seen, key, id := map[string]bool{}, "", ""
	for page := 0; page == 0 || key != ""; page++ {
		l := parse[uploads](t, s.want(200, "", s.do("GET", "/estate?uploads&max-uploads=1&key-marker="+key+"&upload-id-marker="+id, "")))
		for _, u := range l.Upload {
			seen[u.UploadId] = true
		}
		key, id = l.NextKeyMarker, l.Next
	}
	if n != 6 || len(seen) != 6 {
		t.Errorf("%d and %d of 6 uploads", n, len(seen))
	}
}

func TestMinioListing(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	names := []string{"a b", "dir/x+y", "dir/ü", "plain"}
	for _, n := range names {
		if _, err := s.client().PutObject(t.Context(), "estate", n, strings.NewReader(n), int64(len(n)), minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, v1 := range []bool{true, false} {
		var got []string
		for o := range s.client().ListObjects(t.Context(), "estate", minio.ListObjectsOptions{Recursive: true, UseV1: v1, MaxKeys: 1}) {
			got = append(got, o.Key)
		}
		slices.Sort(got)
		if !slices.Equal(got, names) {
			t.Errorf("%v", got)
		}
	}
}
