import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

export const read = (path: string): string => readFileSync(join(root, path), "utf8");

export type Row = Readonly<Record<string, string>>;

const cellsOf = (line: string): string[] =>
  line
    .replace(/^\|/, "")
    .replace(/\|\s*$/, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());

/** Rows of every table whose first column has this title, by column title. Throws when there is no such table. */
export const readTable = (path: string, firstColumn: string): Row[] => {
  const rows: Row[] = [];
  let titles: string[] | undefined;
  let found = false;
  const lines = read(path).split("\n");
  for (const [at, line] of lines.entries()) {
    if (!line.startsWith("|")) titles = undefined;
    else if (/^\|[\s:|-]+$/.test(line)) continue;
    else if (titles) {
      if (titles[0] !== firstColumn) continue;
      const cells = cellsOf(line);
      rows.push(Object.fromEntries(titles.map((title, column) => [title, cells[column] ?? ""])));
    } else if (/^\|[\s:|-]+$/.test(lines[at + 1] ?? "")) {
      titles = cellsOf(line);
      found ||= titles[0] === firstColumn;
    }
  }
  if (!found) throw new Error(`${path} has no table that begins with the column "${firstColumn}"`);
  return rows;
};

/** The first `code` of a cell, else its text. */
export const code = (cell = ""): string => /`([^`]+)`/.exec(cell)?.[1] ?? cell;

export const codes = (cell = ""): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text ?? "");

const skipped = new Set(["node_modules", "dist", "coverage", ".git"]);

/** Paths of all files of the project, relative to its root. */
export const listFiles = (extensions: readonly string[], directory = root): string[] =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    if (skipped.has(entry.name)) return [];
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return listFiles(extensions, path);
    return extensions.some((extension) => entry.name.endsWith(extension)) ? [relative(root, path)] : [];
  });

const withoutFences = (text: string): string => text.replace(/^```[\s\S]*?^```/gm, "");

/** As GitHub makes them from headings. */
const anchorsOf = (path: string): Set<string> =>
  new Set(
    [...withoutFences(read(path)).matchAll(/^#+\s+(.+)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replace(/[^\w\s-]/g, "")
        .trim()
        .replace(/\s/g, "-"),
    ),
  );

/** Relative links of a page that lead nowhere. */
export const findBrokenLinks = (path: string, text = read(path)): string[] =>
  [...withoutFences(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [file = "", anchor] = target.split("#");
      const linked = file === "" ? path : join(dirname(path), file);
      if (!existsSync(join(root, linked))) return true;
      return anchor !== undefined && !anchorsOf(linked).has(anchor);
    });
