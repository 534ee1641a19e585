from typing import List, Tuple

from ._answers import Answer

def facts_of(answer: Answer) -> List[Tuple[str, str, str]]: ...
