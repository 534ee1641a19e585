# Installs man pages and completions, made by ${program}; ${pages} is a folder to write them in. Part of the
# install script.
function(page folder name)
  execute_process(COMMAND ${program} ${ARGN} OUTPUT_FILE ${pages}/${name} COMMAND_ERROR_IS_FATAL ANY)
  file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/share/${folder} TYPE FILE FILES ${pages}/${name})
endfunction()

# A man page; packages have it compressed.
function(man_page name)
  page(man/man1 ${name}.1 man ${ARGN})
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    execute_process(COMMAND gzip -9nf "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/man/man1/${name}.1" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endfunction()

file(MAKE_DIRECTORY ${pages})
man_page(assay)
file(READ ${pages}/assay.1 overview)
string(REGEX MATCHALL "assay[\\]-[a-z]+[(]1[)]" others "${overview}")  # every page that assay(1) refers to
foreach(other IN LISTS others)
  string(REGEX REPLACE "^assay..|[(]1[)]$" "" verb "${other}")
  man_page(assay-${verb} ${verb})
endforeach()

page(bash-completion/completions assay completion bash)
page(fish/vendor_completions.d assay.fish completion fish)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  page(zsh/vendor-completions _assay completion zsh)
else()
  page(zsh/site-functions _assay completion zsh)
endif()
