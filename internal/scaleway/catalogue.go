package scaleway

import (
	"context"
	"fmt"
	"strings"

	"bastide/internal/price"

	"github.com/scaleway/scaleway-sdk-go/api/block/v1"
	catalog "github.com/scaleway/scaleway-sdk-go/api/product_catalog/v2alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"
)

// Prices asks what the zone's block storage and the file's Instance types cost
// now: two listings, at the same time. What it does not answer is priced from
// the table. A failure says nothing about the estate, so that callers go on with
// the table alone.
func (c *Cloud) Prices(ctx context.Context) (map[price.Item]price.Price, error) {
	var machines, storage map[price.Item]price.Price
	readings := []func(context.Context) error{
		into(&machines, c.machinePrices), into(&storage, c.storagePrices),
	}
	if err := together(ctx, len(readings), func(ctx context.Context, i int) error { return readings[i](ctx) }); err != nil {
		return nil, err
	}
	for i, p := range storage {
		machines[i] = p
	}
	return machines, nil
}

// machinePrices reads the public catalogue, which names an Instance type as its
// offer and prices it in one zone.
func (c *Cloud) machinePrices(ctx context.Context) (map[price.Item]price.Price, error) {
	products, err := list(ctx, c, "prices of Instances", func(p *catalog.PublicCatalogProduct) string { return p.Sku },
		func(ctx context.Context, n *int32, size *uint32) ([]*catalog.PublicCatalogProduct, uint64, error) {
			r, err := c.products.ListPublicCatalogProducts(&catalog.PublicCatalogAPIListPublicCatalogProductsRequest{
				ProductTypes: []catalog.ListPublicCatalogProductsRequestProductType{catalog.ListPublicCatalogProductsRequestProductTypeInstance},
				Zone:         &c.zone, APIIDs: c.types(), Page: n, PageSize: size}, scw.WithContext(ctx))
			if err != nil {
				return nil, 0, err
			}
			return r.Products, r.TotalCount, nil
		})
	out := map[price.Item]price.Price{}
	twice := map[price.Item]bool{}
	for _, p := range products {
		item, amount, ok := c.machinePrice(p)
		if before, there := out[item]; ok && there && before.Amount != amount {
			twice[item] = true // it says two things, so it says nothing
		}
		if ok {
			out[item] = price.Price{Amount: amount, Unit: price.Hour, Source: c.catalogue()}
		}
	}
	for item := range twice {
		delete(out, item)
	}
	return out, err
}

func (c *Cloud) machinePrice(p *catalog.PublicCatalogProduct) (price.Item, price.Amount, bool) {
	if p.Properties == nil || p.Properties.Instance == nil || p.Price == nil || p.UnitOfMeasure == nil || p.Locality == nil {
		return "", 0, false
	}
	if p.UnitOfMeasure.Unit != catalog.PublicCatalogProductUnitOfMeasureCountableUnitHour || p.UnitOfMeasure.Size != 1 {
		return "", 0, false
	}
	if p.Locality.Zone == nil || *p.Locality.Zone != c.zone {
		return "", 0, false
	}
	amount, ok := euros(p.Price.RetailPrice)
	return price.Item("instance/" + strings.ToUpper(p.Properties.Instance.OfferID)), amount, ok && p.Properties.Instance.OfferID != ""
}

// storagePrices reads the kinds of block volumes, which differ by their IOPS.
func (c *Cloud) storagePrices(ctx context.Context) (map[price.Item]price.Price, error) {
	types, err := list(ctx, c, "prices of block storage", func(t *block.VolumeType) string { return t.Type },
		func(ctx context.Context, n *int32, size *uint32) ([]*block.VolumeType, uint64, error) {
			r, err := c.blocks.ListVolumeTypes(&block.ListVolumeTypesRequest{Zone: c.zone, Page: n, PageSize: size}, scw.WithContext(ctx))
			if err != nil {
				return nil, 0, err
			}
			return r.VolumeTypes, r.TotalCount, nil
		})
	out := map[price.Item]price.Price{}
	for _, t := range types {
		if t.Specs == nil || t.Specs.PerfIops == nil {
			continue
		}
		if amount, ok := euros(t.Pricing); ok {
			out[price.Item(fmt.Sprintf("block/%d", *t.Specs.PerfIops))] = price.Price{Amount: amount, Unit: price.GBHour, Source: c.catalogue()}
		}
		if amount, ok := euros(t.SnapshotPricing); ok {
			out["snapshot"] = price.Price{Amount: amount, Unit: price.GBHour, Source: c.catalogue()}
		}
	}
	return out, err
}

func (c *Cloud) catalogue() string { return "the catalogue of " + string(c.zone) }

// types are the Instance types that the file asks for.
func (c *Cloud) types() []string {
	var out []string
	seen := map[string]bool{}
	for _, n := range c.estate.Nodes() {
		if !seen[n.Type] {
			seen[n.Type] = true
			out = append(out, n.Type)
		}
	}
	return out
}

// euros reads an amount. One in another currency, or of nothing, is no price.
func euros(m *scw.Money) (price.Amount, bool) {
	if m == nil || m.CurrencyCode != "EUR" || m.Units < 0 || m.Nanos < 0 || m.Units == 0 && m.Nanos == 0 {
		return 0, false
	}
	return price.Amount(m.Units)*price.Euro + price.Amount(m.Nanos), true
}
