// Compiles schemas, and finds what is wrong with a value. A module of its own, so that it is loaded on use (see compiled-check.ts).
export { TypeCompiler } from "@sinclair/typebox/compiler";
export { Errors, ValueErrorType } from "@sinclair/typebox/errors";
