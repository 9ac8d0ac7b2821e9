/** Debian's Python, which is tested: `PATH` may begin with another one. */
export const PYTHON = "/usr/bin/python3";
/** Debian's checker of types. */
export const MYPY = "/usr/bin/mypy";
