# zsh -f complete.zsh LINE: the command line after a tab behind LINE, with the completion of ./_assay.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -D; show() { print -r -- \"<\$BUFFER>\" }; \
zle -N show; bindkey '^X' show; bindkey '^I' complete-word; print -r -- RE''ADY"
zpty -r shell out '*READY*'
zpty -w -n shell "$1"$'\t\C-x'
zpty -r shell out '*<*>*'
out=${${out##*<}%%>*}
print -r -- ${out%% }
zpty -d shell
