package s3_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
)

const five = 5 << 20

func TestMultipart(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	id, _ := s.upload("/estate/key", "replaced by the next")
	big := string(repeat(five))
	first := s.part("/estate/key", id, 1, big)
	second := s.part("/estate/key", id, 2, "end")
	s.part("/estate/key", id, 7, "not listed")
	list := s.want(200, "", s.do("GET", "/estate/key?max-parts=2&uploadId="+id, ""))
	if strings.Count(list.body, "<Part>") != 2 || !strings.Contains(list.body, "<NextPartNumberMarker>2</NextPartNumberMarker>") || !strings.Contains(list.body, "<IsTruncated>true") {
		t.Errorf("%s", list.body)
	}
	for _, c := range []struct{ name, body, code string }{
		{"wrong ETag", completion(first, first), "InvalidPart"},
		{"missing part", completion(first, second, first), "InvalidPart"},
		{"wrong order", `<CompleteMultipartUpload><Part><PartNumber>2</PartNumber><ETag>` + second + `</ETag></Part><Part><PartNumber>1</PartNumber><ETag>` + first + `</ETag></Part></CompleteMultipartUpload>`, "InvalidPartOrder"},
		{"no parts", "<CompleteMultipartUpload></CompleteMultipartUpload>", "MalformedXML"},
		{"no XML", "{}", "MalformedXML"},
	} {
		t.Run(c.name, func(t *testing.T) { s.want(400, c.code, s.do("POST", "/estate/key?uploadId="+id, c.body)) })
	}
	s.want(404, "NoSuchKey", s.do("GET", "/estate/key", ""))
	s.want(409, "BucketNotEmpty", s.do("DELETE", "/estate", ""))
	done := s.want(200, "", s.do("POST", "/estate/key?uploadId="+id, completion(first, second)))
	want := etagOfParts(big, "end")
	if got := parse[struct{ ETag string }](t, done).ETag; got != want {
		t.Errorf("ETag %s, want %s", got, want)
	}
	s.get("/estate/key", big+"end")
	if a := s.want(206, "", s.do("GET", "/estate/key", "", "Range", fmt.Sprintf("bytes=%d-", five-1))); a.body != "fend" {
		t.Errorf("a range across parts is %q", a.body)
	}
	if a := s.want(206, "", s.do("GET", "/estate/key?partNumber=2", "")); a.body != "end" || a.header.Get("X-Amz-Mp-Parts-Count") != "2" {
		t.Errorf("part 2 is %q, %v", a.body, a.header)
	}
	s.want(404, "NoSuchUpload", s.do("POST", "/estate/key?uploadId="+id, completion(first, second)))
}

func etagOfParts(parts ...string) string {
	var all []byte
	for _, p := range parts {
		sum := md5.Sum([]byte(p))
		all = append(all, sum[:]...)
	}
	sum := md5.Sum(all)
	return fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(sum[:]), len(parts))
}

func TestMultipartLimits(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	id, small := s.upload("/estate/key", "small")
	s.part("/estate/key", id, 2, "small")
	s.want(400, "EntityTooSmall", s.do("POST", "/estate/key?uploadId="+id, completion(small, small)))
	for _, n := range []string{"0", "1001", "x", "-1", ""} {
		s.want(400, "InvalidArgument", s.do("PUT", "/estate/key?uploadId="+id+"&partNumber="+n, "x"))
	}
	s.part("/estate/key", id, 1000, "x")
	s.want(404, "NoSuchUpload", s.do("PUT", "/estate/other?partNumber=1&uploadId="+id, "x"))
	if a := s.want(200, "", s.do("GET", "/estate?uploads", "")); strings.Count(a.body, "<Upload>") != 1 || !strings.Contains(a.body, id) {
		t.Errorf("%s", a.body)
	}
	s.want(204, "", s.do("DELETE", "/estate/key?uploadId="+id, ""))
	s.want(404, "NoSuchUpload", s.do("DELETE", "/estate/key?uploadId="+id, ""))
	s.want(404, "NoSuchUpload", s.do("PUT", "/estate/key?partNumber=1&uploadId="+id, "x"))
	s.want(404, "NoSuchUpload", s.do("GET", "/estate/key?uploadId="+id, ""))
	s.want(204, "", s.do("DELETE", "/estate", ""))
	s.want(404, "NoSuchBucket", s.do("POST", "/estate/key?uploads", ""))
}

func TestPartsFromOtherObjects(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	big := string(repeat(five + 16))
	s.put("/estate/source", big)
	id, _ := s.upload("/estate/key", "x")
	part := func(n int, header ...string) answer {
		return s.do("PUT", fmt.Sprintf("/estate/key?partNumber=%d&uploadId=%s", n, id), "", append(header, "X-Amz-Copy-Source", "/estate/source")...)
	}
	etag := func(a answer) string { return parse[struct{ ETag string }](t, s.want(200, "", a)).ETag }
	first := etag(part(1, "X-Amz-Copy-Source-Range", fmt.Sprintf("bytes=0-%d", five-1)))
	second := etag(part(2, "X-Amz-Copy-Source-Range", fmt.Sprintf("bytes=%d-%d", five, five+15)))
	for _, bad := range []string{"bytes=5-1", "bytes=0-", fmt.Sprintf("bytes=0-%d", len(big))} {
		s.want(400, "InvalidArgument", part(3, "X-Amz-Copy-Source-Range", bad))
	}
	s.want(200, "", s.do("POST", "/estate/key?uploadId="+id, completion(first, second)))
	s.get("/estate/key", big)
}

// TestChecksumsOfUploads holds the checksum of a whole object, put together from
// those of its parts, against the one over its bytes.
func TestChecksumsOfUploads(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	big := string(repeat(five))
	for _, algorithm := range []string{"CRC32", "CRC32C", "CRC64NVME"} {
		a := s.want(200, "", s.do("POST", "/estate/parts?uploads", "", "X-Amz-Checksum-Algorithm", algorithm, "X-Amz-Checksum-Type", "FULL_OBJECT"))
		id := parse[struct{ UploadId string }](t, a).UploadId
		done := s.want(200, "", s.do("POST", "/estate/parts?uploadId="+id, completion(s.part("/estate/parts", id, 1, big), s.part("/estate/parts", id, 2, "end of it"))))
		if !strings.Contains(done.body, "<ChecksumType>FULL_OBJECT<") {
			t.Errorf("%s", done.body)
		}
		s.want(200, "", s.do("PUT", "/estate/whole", "", "X-Amz-Copy-Source", "/estate/parts", "X-Amz-Checksum-Algorithm", algorithm))
		of := func(path string) string {
			return s.do("HEAD", path, "", "X-Amz-Checksum-Mode", "ENABLED").header.Get("X-Amz-Checksum-" + algorithm)
		}
		if of("/estate/parts") == "" || of("/estate/parts") != of("/estate/whole") {
			t.Errorf("%s of parts %s, of the whole %s", algorithm, of("/estate/parts"), of("/estate/whole"))
		}
	}
	a := s.want(200, "", s.do("POST", "/estate/parts?uploads", "", "X-Amz-Checksum-Algorithm", "SHA256"))
	id := parse[struct{ UploadId string }](t, a).UploadId
	etag := s.part("/estate/parts", id, 1, "only")
	if done := s.want(200, "", s.do("POST", "/estate/parts?uploadId="+id, completion(etag))); !strings.Contains(done.body, "-1</ChecksumSHA256>") || !strings.Contains(done.body, "COMPOSITE") {
		t.Errorf("%s", done.body)
	}
	s.want(400, "InvalidRequest", s.do("POST", "/estate/parts?uploads", "", "X-Amz-Checksum-Algorithm", "SHA256", "X-Amz-Checksum-Type", "FULL_OBJECT"))
}

// TestMinioUploads takes minio-go's ways of sending a body: signed chunks,
// parts, and trailing checksums, signed and unsigned.
func TestMinioUploads(t *testing.T) {
	s := start(t)
	s.bucket("estate")
	content := repeat(12 << 20)
	for _, c := range []struct {
		name string
		size int64
		opts minio.PutObjectOptions
	}{
		{"small", 1 << 10, minio.PutObjectOptions{}},
		{"no checksum", 1 << 10, minio.PutObjectOptions{DisableContentSha256: true}},
		{"parts", 12 << 20, minio.PutObjectOptions{PartSize: five}},
		{"parts in parallel", 12 << 20, minio.PutObjectOptions{PartSize: five, NumThreads: 2, ConcurrentStreamParts: true}},
		{"length unknown", -1, minio.PutObjectOptions{PartSize: five}},
		{"with MD5", 12 << 20, minio.PutObjectOptions{PartSize: five, SendContentMd5: true}},
		{"crc32c", 12 << 20, minio.PutObjectOptions{PartSize: five, Checksum: minio.ChecksumCRC32C}},
		{"crc32 of the whole", 12 << 20, minio.PutObjectOptions{PartSize: five, Checksum: minio.ChecksumFullObjectCRC32}},
		{"crc64nvme", 12 << 20, minio.PutObjectOptions{PartSize: five, Checksum: minio.ChecksumCRC64NVME}},
		{"sha256 in a trailer", 1 << 10, minio.PutObjectOptions{Checksum: minio.ChecksumSHA256}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := c.size
			if n < 0 {
				n = int64(len(content))
			}
			client := s.client()
			if c.opts.Checksum.IsSet() {
				client = s.trailing()
			}
			info, err := client.PutObject(t.Context(), "estate", c.name, bytes.NewReader(content[:n]), c.size, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			o, err := s.client().GetObject(t.Context(), "estate", c.name, minio.GetObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(o)
			if err != nil || !bytes.Equal(got, content[:n]) {
				t.Errorf("%d bytes came back: %v", len(got), err)
			}
			if stat, err := s.client().StatObject(t.Context(), "estate", c.name, minio.StatObjectOptions{}); err != nil || stat.ETag != info.ETag || stat.Size != n {
				t.Errorf("%+v, %v", stat, err)
			}
		})
	}
}
