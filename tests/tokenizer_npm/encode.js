// node encode.js TOKENIZER_JSON TEXTS_JSON OUT_JSON
// TEXTS_JSON: list of strings.  OUT_JSON: list of {ids, text}, the encoding of each string and the
// decoding of that encoding.
"use strict";

const fs = require("fs");
const { Tokenizer } = require("@anush008/tokenizers");

async function main() {
  const [tokenizerPath, textsPath, outPath] = process.argv.slice(2);
  const tokenizer = Tokenizer.fromFile(tokenizerPath);
  const results = [];
  for (const text of JSON.parse(fs.readFileSync(textsPath, "utf8"))) {
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false });
    const ids = encoding.getIds();
    results.push({ ids, text: await tokenizer.decode(ids, false) });
  }
  fs.writeFileSync(outPath, JSON.stringify(results));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
