# The request that a file means, without what is the same in most.
read_as() { assay "$@" --format json | tr -d ' \n' | grep -o '"request":{[^}]*}' | sed 's/"order":"[^"]*",//; s/"request"://'; }
