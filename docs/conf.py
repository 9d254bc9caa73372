"""The documentation site: Sphinx, MyST-NB and the Furo theme; `make docs` builds it into build/docs."""

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "docs")]

project = "Clew"
copyright = "the Clew contributors, Apache-2.0"
extensions = ["myst_nb", "sphinx.ext.autodoc", "generated_pages"]
html_theme = "furo"
html_title = "Clew"
exclude_patterns = ["_build"]

# Section titles can be linked to, as GitHub does it.
myst_heading_anchors = 3
# The tutorial is stored without results: it is run when the site is built, and again only when it changes.
nb_execution_mode = "cache"
nb_execution_cache_path = str(_ROOT / "build" / "notebooks")
# The first run compiles the design.
nb_execution_timeout = 600
nb_execution_raise_on_error = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
# In the project's docstrings `name` is code, not a reference.
default_role = "code"
