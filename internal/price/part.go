package price

import (
	"encoding/json"
	"fmt"
	"strings"

	"bastide/internal/blueprint"
)

// Part is one thing on a bill that a resource stands for. Most resources have
// one, a database has several.
type Part struct {
	Role  string // which part of the resource it is; empty where there is one
	What  string // in words: "PLAY2-NANO", "20GB at 5000 IOPS"
	Item  Item
	Count int64 // how many of the item; what is billed by the GB has Bytes
	Bytes int64
	// Open is why it cannot be told how much of the item there is. Such a part
	// has no price, and is listed with the price of one unit.
	Open string
	Note string
}

// Parts says what a resource is billed for. billed is false for what is free.
func Parts(spec blueprint.Spec) (parts []Part, billed bool) {
	switch s := spec.(type) {
	case blueprint.Server:
		return one(strings.ToUpper(s.Type), "instance/"+strings.ToUpper(s.Type)), true
	case blueprint.Volume:
		return []Part{volume("", "block", int64(s.Size), s.IOPS)}, true
	case blueprint.Snapshot:
		return []Part{snapshot(s)}, true
	case blueprint.ImageObject:
		return []Part{{What: "image file", Item: "object-storage", Open: "how large it is shows when it is there and can be read; compressed images have 100 to 300 MB, and the file is larger"}}, true
	case blueprint.GatewayIP, blueprint.EdgeIP:
		return one("public IPv4 address", "ipv4"), true
	case blueprint.Gateway:
		return one(strings.ToUpper(s.Type), "gateway/"+strings.ToUpper(s.Type)), true
	case blueprint.LoadBalancer:
		return one(strings.ToUpper(s.Type), "load-balancer/"+strings.ToUpper(s.Type)), true
	case blueprint.Postgres:
		return postgres(s), true
	case blueprint.PostgresSecret:
		parts = one("1 version of a password", "secret-version")
		parts[0].Note = "counted once; after a new password the version before it stays as well"
		return parts, true
	case blueprint.Secret:
		return []Part{{What: "versions of the secret", Item: "secret-version", Open: "how many versions it gets is not in the file"}}, true
	case blueprint.Bucket:
		return []Part{
			{Role: "content", What: "objects", Item: "object-storage", Open: "how much is put into it is not in the file"},
			{Role: "egress", What: "traffic to the Internet", Item: "object-egress", Open: "how much is read from it is not in the file"},
		}, true
	case blueprint.Registry:
		if s.Public {
			return []Part{{What: "public images", Item: "registry-public", Open: "how much is pushed into it is not in the file"}}, true
		}
		return []Part{{What: "private images", Item: "registry", Open: "how much is pushed into it is not in the file"}}, true
	}
	if gratis(spec.Kind()) {
		return nil, false
	}
	return []Part{{What: string(spec.Kind()), Open: "how it is billed is not known to this build"}}, true
}

// parts is Parts with the sizes that the book knows.
func (b Book) parts(spec blueprint.Spec) ([]Part, bool) {
	if file, ok := spec.(blueprint.ImageObject); ok && b.Files[file.Key] > 0 {
		size := b.Files[file.Key]
		return []Part{{What: fmt.Sprintf("image file of %d MB", (size+999_999)/1_000_000), Item: "object-storage", Bytes: size}}, true
	}
	return Parts(spec)
}

// gratis are the kinds that Scaleway asks nothing for, and those that are no
// thing of Scaleway's at all. A kind that is not here has a price or says that
// it has none: nothing is free because it was forgotten.
func gratis(k blueprint.Kind) bool {
	switch k {
	case blueprint.KindVPC, blueprint.KindPrivateNetwork, blueprint.KindSSHKey, blueprint.KindAddress, blueprint.KindGatewayNetwork,
		blueprint.KindSecurityGroup, blueprint.KindPlacementGroup, blueprint.KindPrivateNIC, blueprint.KindPower,
		blueprint.KindLBAttachment, blueprint.KindLBBackend, blueprint.KindLBFrontend, blueprint.KindPostgresDatabase,
		blueprint.KindPostgresUser, blueprint.KindDNSRecord:
		return true
	}
	return k.Cluster()
}

func one(what, item string) []Part { return []Part{{What: what, Item: Item(item), Count: 1}} }

func volume(role, item string, bytes int64, iops int) Part {
	return Part{Role: role, What: fmt.Sprintf("%s GB at %d IOPS", gigabytes(bytes), iops), Item: Item(fmt.Sprintf("%s/%d", item, iops)), Bytes: bytes}
}

// talosDisk is the disk of a Talos image in whole GB, as block storage counts it.
const talosDisk = 5_000_000_000

func snapshot(s blueprint.Snapshot) Part {
	p := Part{Item: "snapshot", Bytes: int64(s.Size)}
	if p.Bytes == 0 {
		p.Bytes = talosDisk
	}
	p.What = gigabytes(p.Bytes) + " GB of snapshot"
	return p
}

// gigabytes writes bytes in decimal GB, which is what Scaleway bills.
func gigabytes(bytes int64) string { return Amount(bytes).String() }

// postgres is the node, twice for high availability, its management once, the
// storage of each node and the backups.
func postgres(s blueprint.Postgres) []Part {
	kind := strings.ToUpper(s.Type)
	node := Part{Role: "node", What: kind, Item: Item("database/" + kind), Count: 1}
	if s.HighAvailability {
		node.Count, node.What, node.Note = 2, "2 "+kind, "one of them stands by"
	}
	parts := []Part{node}
	if _, has := table()[Item("database-management/"+kind)]; has {
		parts = append(parts, Part{Role: "management", What: "management of " + kind, Item: Item("database-management/" + kind), Count: 1})
	}
	storage := volume("storage", "database-storage", int64(s.Size), s.IOPS)
	if s.HighAvailability {
		storage.Note = "billed once; whether the standing node's copy is billed as well is not established"
	}
	parts = append(parts, storage)
	if !s.Backup.Disabled {
		parts = append(parts, Part{Role: "backups", What: "backups, " + s.Backup.String(), Item: "database-backup", Open: "how much they hold is not known beforehand"})
	}
	return parts
}

// Cost is what something comes to. What is billed by the hour costs 730 hours a
// month; of what is billed by the month the hour is a 730th, rounded.
type Cost struct {
	Hour  Amount
	Month Amount
	Once  Amount // for setting up
}

// MarshalJSON adds the day.
func (c Cost) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Hour  Amount `json:"hour"`
		Day   Amount `json:"day"`
		Month Amount `json:"month"`
		Once  Amount `json:"once"`
	}{c.Hour, c.Day(), c.Month, c.Once})
}

// Day is the cost of 24 hours.
func (c Cost) Day() Amount { return 24 * c.Hour }

func (c Cost) plus(d Cost) Cost { return Cost{c.Hour + d.Hour, c.Month + d.Month, c.Once + d.Once} }

func (c Cost) minus(d Cost) Cost { return Cost{c.Hour - d.Hour, c.Month - d.Month, c.Once - d.Once} }

// gigabyte is the unit of storage that is billed, in bytes.
const gigabyte = 1e9

// cost prices a part. why says why it has no price.
func (b Book) cost(p Part) (c Cost, source, why string) {
	unit, known := b.Find(p.Item)
	switch {
	case p.Open != "" && known:
		return c, unit.Source, p.Open + "; " + rate(unit)
	case p.Open != "":
		return c, "", p.Open
	case !known:
		return c, "", fmt.Sprintf("neither the catalogue nor the table has a price for %s", p.Item)
	}
	switch unit.Unit {
	case Hour:
		c.Hour = unit.Amount * Amount(p.Count)
	case GBHour:
		c.Hour = unit.Amount.share(uint64(p.Bytes), gigabyte)
	case Month:
		c.Month = unit.Amount * Amount(p.Count)
		c.Hour = c.Month.share(1, HoursAMonth)
		return c, unit.Source, ""
	case Once:
		c.Once = unit.Amount * Amount(p.Count)
	default:
		return c, unit.Source, "it is billed by use; " + rate(unit)
	}
	c.Month = c.Hour * HoursAMonth
	return c, unit.Source, ""
}

// rate is the price of one unit in words.
func rate(p Price) string {
	switch p.Unit {
	case GBHour:
		return fmt.Sprintf("each GB costs %s euros a month", (p.Amount * HoursAMonth).Euros(4))
	case GB:
		return fmt.Sprintf("each GB costs %s euros", p.Amount)
	case Hour:
		return fmt.Sprintf("each costs %s euros a month", (p.Amount * HoursAMonth).Euros(4))
	}
	return fmt.Sprintf("each costs %s euros", p.Amount)
}
