from typing import Any, Dict, List

soname: str
options: Dict[str, List[Any]]
