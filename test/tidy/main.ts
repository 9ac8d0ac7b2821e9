import { checkTree, describeViolation } from "./rules/check.ts";
import { readTree } from "./rules/files.ts";

const root = `${import.meta.dir}/../..`;
const files = await readTree(root);
const violations = checkTree(files);
for (const violation of violations) console.log(describeViolation(violation));
if (violations.length === 0) console.log(`tidy: ${files.length} files, no violation`);
else console.log(`tidy: ${violations.length} violations in ${files.length} files`);
process.exitCode = violations.length === 0 ? 0 : 1;
