import { finalize, from, Observable, type ObservableInput, type OperatorFunction } from "rxjs";

/**
 * One run per key at a time, at most `concurrency` in all; a key that arrives during its run runs once more afterwards.
 * Memory is bounded by the number of live keys. `run` must not error. (Why not groupBy: docs/adr/0001.)
 */
export const serializeByKey =
  <K, R>(run: (key: K) => ObservableInput<R>, concurrency = Number.POSITIVE_INFINITY): OperatorFunction<K, R> =>
  (keys$) =>
    new Observable<R>((out) => {
      const waiting = new Set<K>();
      const running = new Set<K>();
      let isSourceDone = false;
      let isPumping = false; // a run that ends synchronously must loop, not recurse

      const start = (key: K): void => {
        waiting.delete(key);
        running.add(key);
        const done = finalize<R>(() => {
          running.delete(key);
          pump();
        });
        out.add(
          from(run(key))
            .pipe(done)
            .subscribe({ next: (result) => out.next(result), error: (error) => out.error(error) }),
        );
      };
      const pump = (): void => {
        if (isPumping || out.closed) return;
        isPumping = true;
        for (const key of waiting) {
          if (running.size >= concurrency) break;
          if (!running.has(key)) start(key);
        }
        isPumping = false;
        if (isSourceDone && waiting.size + running.size === 0) out.complete();
      };

      out.add(
        keys$.subscribe({
          next: (key) => {
            waiting.add(key);
            pump();
          },
          error: (error) => out.error(error),
          complete: () => {
            isSourceDone = true;
            pump();
          },
        }),
      );
    });
