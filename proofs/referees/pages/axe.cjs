// Opens pages in chromium, narrow and wide, light and dark, and prints what axe-core finds, and errors of their scripts. Exits with
// 1 if there is anything.
//
//   node axe.cjs CHROMIUM PAGE…        packages are looked up from the working directory
const { createRequire } = require("node:module");
const own = createRequire(`${process.cwd()}/`);
const puppeteer = own("puppeteer-core");

// A phone and a desktop, by day and by night.
const VIEWS = [390, 1280].flatMap((width) => ["light", "dark"].map((scheme) => ({ width, scheme })));

async function check(browser, file) {
  const page = await browser.newPage();
  const found = new Map(); // finding: the views that have it
  let view = "";
  const add = (finding) => found.set(finding, [...(found.get(finding) ?? []), view]);
  page.on("pageerror", (error) => add(`a script failed: ${error.message}`));
  page.on("console", (line) => line.type() === "error" && add(`console: ${line.text()}`));
  let passed = 0;
  let isBook = false;
  for (const { width, scheme } of VIEWS) {
    view = `${width} px ${scheme}`;
    await page.setBypassCSP(false);
    await page.setViewport({ width, height: 900 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    // As a reader opens it, with the page's own policy for scripts.
    await page.goto(`file://${file}`);
    // Then once more without the policy, which axe-core's script would break.
    await page.setBypassCSP(true);
    await page.reload();
    await page.addScriptTag({ path: own.resolve("axe-core/axe.min.js") });
    // Of a page of the book the bar at the top (its sidebar's label, and no landmark) and the scripts, which chromium stops in files,
    // are mdbook's.
    isBook = (await page.$("#mdbook-menu-bar")) !== null;
    const ours = isBook ? { include: ["html"], exclude: ["#mdbook-menu-bar"] } : "html";
    const result = await page.evaluate((ours) => axe.run(ours, { resultTypes: ["violations"] }), ours);
    for (const { id, nodes, help } of result.violations) {
      add(`${id}, ${nodes.length} times: ${help}: ${nodes[0].html.slice(0, 160)}`);
    }
    passed += result.passes.length;
  }
  await page.close();
  if (isBook) for (const finding of found.keys()) if (/^console: |Failed to fetch$/.test(finding)) found.delete(finding);
  return { found: [...found].map(([finding, views]) => `${finding} (${[...new Set(views)].join(", ")})`), passed };
}

(async () => {
  const [chromium, ...files] = process.argv.slice(2);
  const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  let bad = files.length === 0;
  for (const file of files) {
    const { found, passed } = await check(browser, file);
    console.log(`${file}: ${passed} rules passed, ${found.length} findings`);
    for (const finding of found) console.log(`  ${finding}`);
    bad ||= found.length > 0;
  }
  await browser.close();
  process.exitCode = bad ? 1 : 0;
})();
