import { describe, expect, it } from "vitest";
import { createMetrics } from "../../src/http/metrics.ts";
import { code, codes, readTable } from "./markdown.ts";

describe("docs/operations.md", () => {
  it("has every metric with its type, and no other", async () => {
    const { registry } = createMetrics({ isConnected: () => true, isReady: () => true, agents: () => 0 });
    const ours = (await registry.getMetricsAsJSON()).filter(({ name }) => name.startsWith("roboco_"));
    const documented = readTable("docs/operations.md", "Metric").map((row) => [code(row.Metric), row.Type]);
    expect(documented.sort()).toEqual(ours.map(({ name, type }) => [name, String(type)]).sort());
  });

  it("has every metric's labels", async () => {
    const { registry } = createMetrics({ isConnected: () => true, isReady: () => true, agents: () => 0 });
    for (const row of readTable("docs/operations.md", "Metric")) {
      // The type does not tell the labels that every metric has.
      const metric = registry.getSingleMetric(code(row.Metric)) as unknown as { labelNames: readonly string[] };
      expect(codes(row.Labels), row.Metric).toEqual([...metric.labelNames]);
    }
  });
});
