from typing import Any, Callable, List, Optional, Sequence

from ._answers import Answer

def text(
    function: Callable[..., Any], *arguments: Any, mesh: Any, in_shardings: Optional[Sequence[Any]] = None, platform: str = ...
) -> str: ...
def plan(
    function: Callable[..., Any],
    *arguments: Any,
    mesh: Any,
    in_shardings: Optional[Sequence[Any]] = None,
    on: Optional[str] = None,
    **options: Any,
) -> Answer: ...
def check(
    function: Callable[..., Any], *arguments: Any, mesh: Any, in_shardings: Optional[Sequence[Any]] = None, **options: Any
) -> Answer: ...
def constraints(answer: Answer) -> List[str]: ...
