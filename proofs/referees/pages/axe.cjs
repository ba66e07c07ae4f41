// Opens pages in chromium and prints what axe-core finds, and errors of their scripts. Exits with 1 if there is anything.
//
//   node axe.cjs CHROMIUM PAGE…        packages are looked up from the working directory
const { createRequire } = require("node:module");
const own = createRequire(`${process.cwd()}/`);
const puppeteer = own("puppeteer-core");

async function check(browser, file) {
  const page = await browser.newPage();
  const found = [];
  page.on("pageerror", (error) => found.push(`a script failed: ${error.message}`));
  page.on("console", (line) => line.type() === "error" && found.push(`console: ${line.text()}`));
  // As a reader opens it, with the page's own policy for scripts.
  await page.goto(`file://${file}`);
  // Then once more without the policy, which axe-core's script would break.
  await page.setBypassCSP(true);
  await page.reload();
  await page.addScriptTag({ path: own.resolve("axe-core/axe.min.js") });
  // Of a page of the book only the chapter is ours: the frame and its scripts, which chromium stops in files, are mdbook's.
  const isBook = (await page.$("#mdbook-sidebar-toggle")) !== null;
  const ours = isBook ? "main" : "html";
  const result = await page.evaluate((ours) => axe.run(ours, { resultTypes: ["violations"] }), ours);
  for (const { id, nodes, help } of result.violations) {
    found.push(`${id}, ${nodes.length} times: ${help}: ${nodes[0].html.slice(0, 160)}`);
  }
  await page.close();
  if (isBook) found.splice(0, found.length, ...found.filter((finding) => !/^console: |Failed to fetch$/.test(finding)));
  return { found, passed: result.passes.length };
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
