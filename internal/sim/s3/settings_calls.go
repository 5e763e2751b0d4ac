package s3

import "net/http"

// The calls that set, read and remove settings are alike; what differs is where
// a bucket keeps a setting and what its absence is called.

type checked interface{ check() error }

// putSetting reads a setting strictly and keeps it.
func putSetting[T any, P interface {
	*T
	checked
}](c *call, action, element string, keep func(*bucket) *P) (*reply, error) {
	b, err := c.bucket(need{action: action})
	if err != nil {
		return nil, err
	}
	in := P(new(T))
	if err := decodeXML(c.config, element, in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	*keep(b) = in
	c.did("changed", "bucket", b.name)
	return newReply(http.StatusOK), nil
}

func getSetting[T any](c *call, action string, of func(*bucket) *T, view func(*T) any, missing *refusal) (*reply, error) {
	b, err := c.bucket(need{action: action})
	if err != nil {
		return nil, err
	}
	v := of(b)
	if v == nil {
		return nil, missing
	}
	return xmlReply(view(v))
}

func deleteSetting(c *call, action string, forget func(*bucket)) (*reply, error) {
	b, err := c.bucket(need{action: action})
	if err != nil {
		return nil, err
	}
	forget(b)
	c.did("changed", "bucket", b.name)
	return newReply(http.StatusNoContent), nil
}

func (c *call) putCORS() (*reply, error) {
	return putSetting(c, "s3:PutBucketCORS", "CORSConfiguration", func(b *bucket) **corsConfig { return &b.cors })
}

func (c *call) getCORS() (*reply, error) {
	return getSetting(c, "s3:GetBucketCORS", func(b *bucket) *corsConfig { return b.cors },
		func(v *corsConfig) any { w := *v; w.XMLName = root("CORSConfiguration"); return w },
		notFound("NoSuchCORSConfiguration", "The CORS configuration does not exist"))
}

func (c *call) deleteCORS() (*reply, error) {
	return deleteSetting(c, "s3:PutBucketCORS", func(b *bucket) { b.cors = nil })
}

func (c *call) putWebsite() (*reply, error) {
	return putSetting(c, "s3:PutBucketWebsite", "WebsiteConfiguration", func(b *bucket) **websiteConfig { return &b.website })
}

func (c *call) getWebsite() (*reply, error) {
	return getSetting(c, "s3:GetBucketWebsite", func(b *bucket) *websiteConfig { return b.website },
		func(v *websiteConfig) any { w := *v; w.XMLName = root("WebsiteConfiguration"); return w },
		notFound("NoSuchWebsiteConfiguration", "The specified bucket does not have a website configuration").with("BucketName", c.name))
}

func (c *call) deleteWebsite() (*reply, error) {
	return deleteSetting(c, "s3:DeleteBucketWebsite", func(b *bucket) { b.website = nil })
}

func (c *call) putEncryption() (*reply, error) {
	return putSetting(c, "s3:PutEncryptionConfiguration", "ServerSideEncryptionConfiguration", func(b *bucket) **encryptionConfig { return &b.encryption })
}

func (c *call) getEncryption() (*reply, error) {
	return getSetting(c, "s3:GetEncryptionConfiguration", func(b *bucket) *encryptionConfig { return b.encryption },
		func(v *encryptionConfig) any {
			w := *v
			w.XMLName = bare("ServerSideEncryptionConfiguration")
			return w
		},
		notFound("ServerSideEncryptionConfigurationNotFoundError", "The server side encryption configuration was not found").with("BucketName", c.name))
}

func (c *call) deleteEncryption() (*reply, error) {
	return deleteSetting(c, "s3:PutEncryptionConfiguration", func(b *bucket) { b.encryption = nil })
}

func (c *call) putLifecycle() (*reply, error) {
	return putSetting(c, "s3:PutLifecycleConfiguration", "LifecycleConfiguration", func(b *bucket) **lifecycleConfig { return &b.lifecycle })
}

func (c *call) getLifecycle() (*reply, error) {
	return getSetting(c, "s3:GetLifecycleConfiguration", func(b *bucket) *lifecycleConfig { return b.lifecycle },
		func(v *lifecycleConfig) any { w := *v; w.XMLName = root("LifecycleConfiguration"); return w },
		notFound("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist").with("BucketName", c.name))
}

func (c *call) deleteLifecycle() (*reply, error) {
	return deleteSetting(c, "s3:PutLifecycleConfiguration", func(b *bucket) { b.lifecycle = nil })
}
