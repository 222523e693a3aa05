import fc from "fast-check";
import { from, map, NEVER, type Observable, of, Subject, takeUntil, timer } from "rxjs";
import { TestScheduler } from "rxjs/testing";
import { describe, expect, it } from "vitest";
import { serializeByKey } from "../../src/reconcile/serialize-by-key.ts";

const createScheduler = (): TestScheduler => new TestScheduler((actual, expected) => expect(actual).toEqual(expected));

/** A run that takes four frames and ends with its key. */
const run = (key: string): Observable<string> => timer(4).pipe(map(() => key));

describe("serializeByKey", () => {
  it.each([
    [
      "runs a key once more, and only once, for all that came during its run",
      "aaa-a---------|",
      "----a---a-----|",
      Number.POSITIVE_INFINITY,
    ],
    ["runs again for a key that comes after its run", "a-----a|", "----a-----(a|)", Number.POSITIVE_INFINITY],
    ["runs different keys at once", "(abc|)", "----(abc|)", Number.POSITIVE_INFINITY],
    ["runs no more than its slots at once, and loses none", "(abc)--|", "----(ab)(c|)", 2],
    ["runs a key that waits for a slot once, however often it came", "abbb|", "----a---(b|)", 1],
    ["runs one slot's keys in the order in which they came", "a(cb)|", "----a---c---(b|)", 1],
    ["completes with its source when nothing runs", "a-----|", "----a-|", Number.POSITIVE_INFINITY],
  ])("%s", (_title, source, expected, concurrency) => {
    createScheduler().run(({ hot, expectObservable }) => {
      expectObservable(hot(source).pipe(serializeByKey(run, concurrency))).toBe(expected);
    });
  });

  it("lets the runs under way and what waits behind them end when its source is cut", () => {
    createScheduler().run(({ hot, expectObservable }) => {
      expectObservable(hot("a-a").pipe(takeUntil(timer(3)), serializeByKey(run))).toBe("----a---(a|)");
    });
  });

  it("cuts the runs under way when it is cut itself, and starts no other", () => {
    createScheduler().run(({ hot, expectObservable }) => {
      const started: string[] = [];
      const runs = (key: string) => {
        started.push(key);
        return run(key);
      };
      expectObservable(hot("a-a").pipe(serializeByKey(runs), takeUntil(timer(3)))).toBe("---|");
      timer(20).subscribe(() => expect(started).toEqual(["a"]));
    });
  });

  it("unsubscribes from its source and from its runs", () => {
    createScheduler().run(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot("a-----");
      const inner = cold("----------");
      expectObservable(source.pipe(serializeByKey(() => inner)), "---!").toBe("----");
      expectSubscriptions(source.subscriptions).toBe("^--!");
      expectSubscriptions(inner.subscriptions).toBe("^--!");
    });
  });

  it("passes on its source's error", () => {
    createScheduler().run(({ hot, expectObservable }) => {
      expectObservable(hot("a-#").pipe(serializeByKey(run))).toBe("--#");
    });
  });

  it("takes many waiting keys whose runs end at once, without recursion", () => {
    const keys = Array.from({ length: 20_000 }, (_, index) => index);
    const first = new Subject<number>();
    const out: number[] = [];
    let isComplete = false;
    from([-1, ...keys])
      .pipe(serializeByKey((key) => (key === -1 ? first : of(key)), 1))
      .subscribe({
        next: (key) => out.push(key),
        complete: () => {
          isComplete = true;
        },
      });
    expect(out).toEqual([]);
    first.complete();
    expect(out).toEqual(keys);
    expect(isComplete).toBe(true);
  });

  it("starts a run again for a key that its own synchronous run brings", () => {
    let runs = 0;
    const out: string[] = [];
    of("a", "a")
      .pipe(
        serializeByKey((key) => {
          runs += 1;
          return of(key);
        }),
      )
      .subscribe((key) => out.push(key));
    expect(runs).toBe(2);
    expect(out).toEqual(["a", "a"]);
  });

  it("never runs a key twice at once nor more than its slots, and looks at each key after its last event", () => {
    const events = fc.array(fc.record({ at: fc.nat(40), key: fc.constantFrom("a", "b", "c", "d") }), { maxLength: 30 });
    fc.assert(
      fc.property(events, fc.integer({ min: 1, max: 3 }), fc.integer({ min: 0, max: 9 }), (given, slots, lastsMs) => {
        const scheduler = createScheduler();
        scheduler.run(({ hot, flush }) => {
          const running = new Map<string, number>();
          const startedAt = new Map<string, number>();
          let isComplete = false;
          const frames = new Map<number, string>();
          for (const { at, key } of given) frames.set(at, (frames.get(at) ?? "") + key);
          const marbles = [...frames]
            .sort(([a], [b]) => a - b)
            .reduce(
              ({ text, at }, [frame, keys]) => {
                const group = keys.length === 1 ? keys : `(${keys})`;
                // A group takes as many frames as it has characters.
                const start = Math.max(at, frame);
                const gap = start - at;
                return { text: `${text}${gap > 0 ? ` ${gap}ms ` : ""}${group}`, at: start + group.length };
              },
              { text: "", at: 0 },
            );
          const lastEventAt = new Map<string, number>();
          const source = hot<string>(`${marbles.text}|`);
          source.subscribe((key) => lastEventAt.set(key, scheduler.now()));
          source
            .pipe(
              serializeByKey((key) => {
                running.set(key, (running.get(key) ?? 0) + 1);
                startedAt.set(key, scheduler.now());
                expect(running.get(key)).toBe(1);
                expect([...running.values()].filter((count) => count > 0).length).toBeLessThanOrEqual(slots);
                return timer(lastsMs).pipe(
                  map(() => {
                    running.set(key, 0);
                    return key;
                  }),
                );
              }, slots),
            )
            .subscribe({
              complete: () => {
                isComplete = true;
              },
            });
          flush();
          expect(isComplete).toBe(true);
          for (const [key, at] of lastEventAt) expect(startedAt.get(key)).toBeGreaterThanOrEqual(at);
        });
      }),
      { numRuns: 300 },
    );
  });

  it("waits for ever with a run that does not end, and for that key alone", () => {
    createScheduler().run(({ hot, expectObservable }) => {
      const runs = (key: string) => (key === "a" ? NEVER : run(key));
      expectObservable(hot("abab-|").pipe(serializeByKey(runs, 2)), "---------------!").toBe("-----b---b");
    });
  });
});
