import type { Document } from "../document.ts";
import { GENERATE_COMMAND, PYTHON_FILES } from "../generate.ts";
import { methods, operationTable } from "./methods.ts";
import { models } from "./models.ts";

const HEADER = `# Written by \`${GENERATE_COMMAND}\` from test/golden/openapi.json. Change the schemas of the areas instead.\n`;

/** The generated files of the Python package by their paths. */
export function pythonFiles(document: Document): Record<string, string> {
  return {
    [PYTHON_FILES.models]: file("Types of the API's requests and responses: plain dicts at run time.", [
      "from typing import Any, Dict, List, Literal, Optional, TypedDict, Union",
      "",
      "",
      models(document),
    ]),
    [PYTHON_FILES.methods]: file("Methods that send the request of one operation.", [
      "from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, Union, cast, overload",
      "",
      "from ._api import Api, Methods, Pages, fields_of",
      "from ._options import DEFAULT, Default",
      "",
      "if TYPE_CHECKING:",
      "    from typing_extensions import Unpack",
      "",
      "    from . import models",
      "",
      "",
      methods(document),
    ]),
    [PYTHON_FILES.operations]: file("What is special about some operations.", [
      "from typing import Dict, Tuple",
      "",
      operationTable(document),
    ]),
  };
}

function file(what: string, lines: readonly string[]): string {
  return [`${HEADER}"""${what}"""`, "", "from __future__ import annotations", "", ...lines].join("\n");
}
